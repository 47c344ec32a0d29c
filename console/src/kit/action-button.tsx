import { Button } from "./button.tsx";
import type { IconName } from "./icons.tsx";
import { session, useMay } from "./session.ts";
import { useStore } from "./store.ts";

interface ActionButtonProps {
  readonly role?: "operator" | "admin";
  readonly icon: IconName;
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  /** Why it cannot be done with this one, whoever asks; null when it can. */
  readonly whyNot?: string | null;
  readonly title?: string;
  /** For a button that is an icon alone. */
  readonly label?: string;
  readonly isBusy?: boolean;
  onClick(): void;
  readonly children?: string;
}

/** A button that changes something. Those who may not see it all the same, and why they may not. */
export function ActionButton(props: ActionButtonProps) {
  const { role = "operator", whyNot = null, title, onClick, ...rest } = props;
  const may = useMay(role);
  const mine = useStore(session)?.identity?.role ?? "nobody";
  const why = may ? whyNot : `This needs the role ${role}; you are signed in as ${mine}.`;
  return <Button {...rest} title={why ?? title ?? props.label} isDisabled={why !== null} onClick={onClick} />;
}
