import { Button } from "./button.tsx";
import type { IconName } from "./icons.tsx";
import { session, useMay } from "./session.ts";
import { useStore } from "./store.ts";

interface ActionButtonProps {
  readonly role?: "operator" | "admin";
  readonly icon: IconName;
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  /** Why the action is unavailable for this item, regardless of the role; null if it is available. */
  readonly whyNot?: string | null;
  readonly title?: string;
  /** Accessible name for a button that has only an icon. */
  readonly label?: string;
  readonly isBusy?: boolean;
  onClick(): void;
  readonly children?: string;
}

/** A button that changes something. Without the role it is shown disabled, with the reason. */
export function ActionButton(props: ActionButtonProps) {
  const { role = "operator", whyNot = null, title, onClick, ...rest } = props;
  const may = useMay(role);
  const mine = useStore(session)?.identity?.role ?? "no role";
  const why = may ? whyNot : `Requires the role ${role}; you are signed in as ${mine}.`;
  return <Button {...rest} title={why ?? title ?? props.label} isDisabled={why !== null} onClick={onClick} />;
}

/** Explains disabled buttons to users without the role. */
export function RoleNote() {
  const may = useMay("operator");
  const role = useStore(session)?.identity?.role;
  return may || role === undefined ? null : (
    <span class="note">Your role is {role}: only operators can make changes.</span>
  );
}
