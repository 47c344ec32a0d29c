import { session, useMay } from "./session.ts";
import { useStore } from "./store.ts";

/** Beside buttons that somebody sees and may not press. */
export function RoleNote() {
  const may = useMay("operator");
  const role = useStore(session)?.identity?.role;
  return may || role === undefined ? null : (
    <span class="note">You are a {role}: to change things is for operators.</span>
  );
}
