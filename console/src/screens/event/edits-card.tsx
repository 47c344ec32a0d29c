import { Ago } from "../../kit/figures.tsx";
import { Card } from "../../kit/page.tsx";
import { Because } from "../../kit/plain-text.tsx";
import type { Edit, ShownEvent } from "../../kit/types.ts";
import { planHref } from "../links.ts";
import { Diff, payloadSays } from "./diff.tsx";
import { headersText } from "./header-rows.ts";

/** The edits of the event, newest first, each as a diff. */
export function EditsCard({ event: { edits } }: { readonly event: ShownEvent }) {
  if (edits.length === 0) return null;
  return (
    <Card title="Edits" note="before and after">
      {edits.map((edit) => (
        <OneEdit key={edit.id} edit={edit} />
      ))}
    </Card>
  );
}

function OneEdit({ edit: { after, at, before, by, plan, reason } }: { readonly edit: Edit }) {
  const [was, now] = [headersText(before.headers), headersText(after.headers)];
  return (
    <section class="edit">
      <p class="soft">
        {by}, <Ago at={at} />
        {plan !== null && (
          <>
            , by a <a href={planHref(plan)}>plan with a patch</a>
          </>
        )}
        <Because reason={reason} />
      </p>
      {before.payload === null || after.payload === null ? (
        <p class="faint">You have no permission to see payloads.</p>
      ) : (
        <Diff label="Changes to the payload" before={payloadSays(before.payload)} after={payloadSays(after.payload)} />
      )}
      {was !== now && <Diff label="Changes to the headers" before={was} after={now} />}
    </section>
  );
}
