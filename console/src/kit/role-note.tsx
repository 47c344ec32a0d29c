import { session, useMay } from "./session.ts";
import { useStore } from "./store.ts";

/** Explains disabled buttons to users without the role. */
export function RoleNote() {
  const may = useMay("operator");
  const role = useStore(session)?.identity?.role;
  return may || role === undefined ? null : (
    <span class="note">Your role is {role}: only operators can make changes.</span>
  );
}
