import { jsonPieces } from "../../kit/json-text.ts";

export function isJson(text: string): boolean {
  return jsonPieces(text) !== null;
}

/** Pretty-printed JSON with every number as it was written; other text unchanged. */
export function setOut(text: string): string {
  return (
    jsonPieces(text)
      ?.map((piece) => piece.text)
      .join("") ?? text
  );
}
