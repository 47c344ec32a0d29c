import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";
import { toast } from "./toast.tsx";

interface ButtonProps {
  readonly onClick?: (() => void) | undefined;
  /** A link that looks like a button. */
  readonly href?: string | undefined;
  readonly kind?: "plain" | "primary" | "danger" | "quiet" | undefined;
  readonly icon?: IconName | undefined;
  /** Accessible name for a button that has only an icon. */
  readonly label?: string | undefined;
  readonly title?: string | undefined;
  readonly isDisabled?: boolean | undefined;
  readonly isBusy?: boolean | undefined;
  readonly type?: "button" | "submit" | undefined;
  readonly children?: ComponentChildren;
}

export function Button(props: ButtonProps) {
  const { children, href, icon, isBusy = false, isDisabled = false, kind = "plain", label, title } = props;
  const look = `button ${kind}${children === undefined ? " square" : ""}`;
  const inside = (
    <>
      {icon !== undefined && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </>
  );
  if (href !== undefined) {
    return (
      <a class={look} href={href} aria-label={label} title={title ?? label}>
        {inside}
      </a>
    );
  }
  return (
    <button
      type={props.type ?? "button"}
      class={look}
      onClick={props.onClick}
      disabled={isDisabled || isBusy}
      aria-busy={isBusy}
      aria-label={label}
      title={title ?? label}
    >
      {inside}
    </button>
  );
}

const SHOWN_MS = 1_500;

/** Without clipboard access, as on plain http, a message shows the text so that the user can copy it. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast(text, { title: "The browser blocks the clipboard. Copy this text:" });
    return false;
  }
}

function useCopy(text: string): readonly [isCopied: boolean, copy: () => void] {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return [isCopied, () => void copyText(text).then(setCopied)];
}

export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const [isCopied, copy] = useCopy(text);
  return <Button kind="quiet" icon={isCopied ? "check" : "copy"} label={isCopied ? "Copied" : label} onClick={copy} />;
}

/** Copies the CLI command for the same action or query. See kit/command.ts. */
export function CliButton({ command }: { readonly command: string }) {
  const [isCopied, copy] = useCopy(command);
  return (
    <Button kind="quiet" icon={isCopied ? "check" : "terminal"} title={command} onClick={copy}>
      {isCopied ? "Copied" : "Copy as CLI"}
    </Button>
  );
}
