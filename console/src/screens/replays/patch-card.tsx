import { Answer, Empty } from "../../kit/error-box.tsx";
import { Card } from "../../kit/page.tsx";
import { segment } from "../../kit/place.ts";
import { Marked, PlainText } from "../../kit/plain-text.tsx";
import type { PatchPreview, Plan } from "../../kit/types.ts";
import { useApi } from "../../kit/use-api.ts";
import { visibleText } from "../../kit/visible-text.ts";
import { Diff, payloadSays } from "../event/diff.tsx";
import { setOut } from "../event/line-change.ts";
import { eventHref } from "../links.ts";

/** The patch of the plan with its effect on a few payloads. */
export function PatchCard({ plan }: { readonly plan: Plan }) {
  if (plan.patch === null) return null;
  return <Patch plan={plan} patch={plan.patch} />;
}

function Patch({ plan, patch }: { readonly plan: Plan; readonly patch: string }) {
  const asked = useApi<PatchPreview>(`/replays/${segment(plan.id)}/preview`);
  return (
    <Card title="Patch" note="applied to each payload before it is sent">
      <pre class="diff">
        <Marked text={setOut(patch)} keepsLines />
      </pre>
      <Answer asked={asked}>
        {({ examples }) =>
          examples.length === 0 ? (
            <Empty title="No events left to patch" icon="check" />
          ) : (
            examples.map(({ after, before, id, problem, source, type }) => (
              <section class="edit" key={source + id}>
                <p class="soft">
                  <PlainText text={type} />{" "}
                  <a class="mono" href={eventHref({ id, source })}>
                    <PlainText text={id} />
                  </a>
                </p>
                {after === null ? (
                  <p class="bad">
                    Not patched: <PlainText text={problem ?? ""} charsMax={500} />.
                  </p>
                ) : (
                  <Diff
                    label={`Changes to ${visibleText(id)}`}
                    before={payloadSays(before)}
                    after={payloadSays(after)}
                  />
                )}
              </section>
            ))
          )
        }
      </Answer>
    </Card>
  );
}
