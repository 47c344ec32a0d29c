/** Letters are shortcuts only outside of text fields, and never together with Ctrl, Alt or Meta. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.target as HTMLElement | null;
  return target?.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]") != null;
}
