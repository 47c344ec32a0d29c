import { jsonPieces } from "../../kit/json-text.ts";

export function isJson(text: string): boolean {
  return jsonPieces(text) !== null;
}

/** JSON in lines, with every number as it was written; other text as it is. */
export function setOut(text: string): string {
  return (
    jsonPieces(text)
      ?.map((piece) => piece.text)
      .join("") ?? text
  );
}
