import type { Command, Option } from "commander";

/** The shells with completion. */
export const SHELLS = ["bash", "zsh", "fish"] as const;
/** A shell with completion. */
export type Shell = (typeof SHELLS)[number];

/** A command with its path, its subcommands and choices, and its options. */
interface CommandNode {
  /** `migrate`, `lanes set`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly Word[];
  readonly options: readonly Word[];
}

interface Word {
  readonly text: string;
  readonly about: string;
}

/** Generates the script from the commands themselves, so that none is missing. */
export function completionScript(program: Command, shell: Shell): string {
  const nodes = nodesOf(program);
  if (shell === "bash") return bashScript(program.name(), nodes);
  return shell === "zsh" ? zshScript(program.name(), nodes) : fishScript(program.name(), nodes);
}

function nodesOf(command: Command, path = "", inherited: readonly Option[] = []): CommandNode[] {
  const options = [...command.options, ...inherited];
  const choices = command.registeredArguments.flatMap(({ argChoices, description }) =>
    (argChoices ?? []).map((text) => ({ text, about: description })),
  );
  const children = command.commands.filter((child) => child.name() !== "help");
  const words = [...children.map((child) => ({ text: child.name(), about: child.description() })), ...choices];
  const node = {
    path,
    words,
    options: [
      ...options.map((option) => ({ text: option.long ?? option.flags, about: option.description })),
      { text: "--help", about: "show the help" },
    ],
  };
  return [
    node,
    ...children.flatMap((child) => nodesOf(child, `${path} ${child.name()}`.trim(), path === "" ? options : inherited)),
  ];
}

const identifier = (name: string): string => `_${name.replace(/\W/g, "_")}`;

/** Finds the longest command path in the words before the cursor; skips options and their values. */
function bashScript(name: string, nodes: readonly CommandNode[]): string {
  const cases = nodes
    .map(({ options, path, words }) => {
      const list = (all: readonly Word[]) => all.map(({ text }) => text).join(" ");
      return `    "${path}") words="${list(words)}"; options="${list(options)}" ;;`;
    })
    .join("\n");
  const paths = nodes.map(({ path }) => `"${path}"`).join("|");
  return `# bash completion for ${name}
${identifier(name)}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words options
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases}
  esac
  if [[ $current == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$current"))
  else COMPREPLY=($(compgen -W "$words" -- "$current")); fi
}
complete -o default -F ${identifier(name)} ${name}
`;
}

function zshScript(name: string, nodes: readonly CommandNode[]): string {
  const quoted = ({ about, text }: Word) => `'${`${text}:${about}`.replaceAll("'", "'\\''").replaceAll("\n", " ")}'`;
  const cases = nodes
    .map(({ options, path, words }) => {
      const [ofWords, ofOptions] = [words.map(quoted).join(" "), options.map(quoted).join(" ")];
      return `    "${path}") items=(${ofWords}); flags=(${ofOptions}) ;;`;
    })
    .join("\n");
  const paths = nodes.map(({ path }) => `"${path}"`).join("|");
  return `#compdef ${name}
${identifier(name)}() {
  local path_so_far="" word
  local -a items flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${path_so_far:+$path_so_far }$word" in
      ${paths}) path_so_far="\${path_so_far:+$path_so_far }$word" ;;
    esac
  done
  case "$path_so_far" in
${cases}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then _describe option flags; else _describe command items || _files; fi
}
compdef ${identifier(name)} ${name}
`;
}

function fishScript(name: string, nodes: readonly CommandNode[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", " ")}'`;
  const known = nodes.filter(({ path }) => path !== "" && !path.includes(" ")).map(({ path }) => path);
  const lines = nodes.flatMap(({ options, path, words }) => {
    const [first = "", second] = path.split(" ");
    const isHere =
      path === ""
        ? `not __fish_seen_subcommand_from ${known.join(" ")}`
        : [first, second]
            .filter(Boolean)
            .map((word) => `__fish_seen_subcommand_from ${word}`)
            .join("; and ");
    const condition = quote(isHere);
    return [
      ...words.map(({ about, text }) => `complete -c ${name} -n ${condition} -f -a ${text} -d ${quote(about)}`),
      ...options
        .filter(({ text }) => text.startsWith("--"))
        .map(({ about, text }) => `complete -c ${name} -n ${condition} -l ${text.slice(2)} -d ${quote(about)}`),
    ];
  });
  return `# fish completion for ${name}\n${lines.join("\n")}\n`;
}
