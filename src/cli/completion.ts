import type { Command, Option } from "commander";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** A command with the words that lead to it, and what may follow. */
interface Place {
  /** `migrate`, `lanes set`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly Word[];
  readonly options: readonly Word[];
}

interface Word {
  readonly text: string;
  readonly about: string;
}

/** Made from the commands themselves, so that none can be missing. */
export function completionScript(program: Command, shell: Shell): string {
  const places = placesOf(program);
  if (shell === "bash") return bashScript(program.name(), places);
  return shell === "zsh" ? zshScript(program.name(), places) : fishScript(program.name(), places);
}

function placesOf(command: Command, path = "", inherited: readonly Option[] = []): Place[] {
  const options = [...command.options, ...inherited];
  const choices = command.registeredArguments.flatMap(({ argChoices, description }) =>
    (argChoices ?? []).map((text) => ({ text, about: description })),
  );
  const children = command.commands.filter((child) => child.name() !== "help");
  const words = [...children.map((child) => ({ text: child.name(), about: child.description() })), ...choices];
  const place = {
    path,
    words,
    options: [
      ...options.map((option) => ({ text: option.long ?? option.flags, about: option.description })),
      { text: "--help", about: "show the help" },
    ],
  };
  return [
    place,
    ...children.flatMap((child) =>
      placesOf(child, `${path} ${child.name()}`.trim(), path === "" ? options : inherited),
    ),
  ];
}

const identifier = (name: string): string => `_${name.replace(/\W/g, "_")}`;

/** The longest path that the words before the cursor spell; options and their values are passed over. */
function bashScript(name: string, places: readonly Place[]): string {
  const cases = places
    .map(({ options, path, words }) => {
      const list = (all: readonly Word[]) => all.map(({ text }) => text).join(" ");
      return `    "${path}") words="${list(words)}"; options="${list(options)}" ;;`;
    })
    .join("\n");
  const paths = places.map(({ path }) => `"${path}"`).join("|");
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

function zshScript(name: string, places: readonly Place[]): string {
  const quoted = ({ about, text }: Word) => `'${`${text}:${about}`.replaceAll("'", "'\\''").replaceAll("\n", " ")}'`;
  const cases = places
    .map(({ options, path, words }) => {
      const [ofWords, ofOptions] = [words.map(quoted).join(" "), options.map(quoted).join(" ")];
      return `    "${path}") items=(${ofWords}); flags=(${ofOptions}) ;;`;
    })
    .join("\n");
  const paths = places.map(({ path }) => `"${path}"`).join("|");
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

function fishScript(name: string, places: readonly Place[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", " ")}'`;
  const known = places.filter(({ path }) => path !== "" && !path.includes(" ")).map(({ path }) => path);
  const lines = places.flatMap(({ options, path, words }) => {
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
