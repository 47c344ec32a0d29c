import { ActionButton } from "../../kit/action-button.tsx";
import { apiPost } from "../../kit/api.ts";
import { command, flag } from "../../kit/command.ts";
import { askFor } from "../../kit/dialog.tsx";
import { plural } from "../../kit/format.ts";
import { toast } from "../../kit/toast.tsx";
import type { ChangedPipelines, PipelineStatus } from "../../kit/types.ts";

interface BulkProps {
  /** The selected pipelines, at least one. */
  readonly meant: readonly PipelineStatus[];
  done(): void;
}

/** Changes several pipelines in one step: all of them, or none if one no longer exists. */
export function PipelineBulk({ meant, done }: BulkProps) {
  const paused = meant.filter(({ pause }) => pause !== null);
  const running = meant.filter(({ pause }) => pause === null);
  return (
    <>
      <ActionButton icon="limit" onClick={() => askForLimit(names(meant), done)}>
        {`Limit ${plural(meant.length, "pipeline")}`}
      </ActionButton>
      {paused.length > 0 && (
        <ActionButton icon="play" onClick={() => askForResume(names(paused), done)}>
          {`Resume ${plural(paused.length, "pipeline")}`}
        </ActionButton>
      )}
      {running.length > 0 && (
        <ActionButton icon="pause" kind="primary" onClick={() => askForPause(names(running), done)}>
          {`Pause ${plural(running.length, "pipeline")}`}
        </ActionButton>
      )}
    </>
  );
}

const names = (meant: readonly PipelineStatus[]) => meant.map(({ pipeline }) => pipeline);

async function change(body: object, done: (count: number) => string, reload: () => void): Promise<void> {
  const { pipelines } = await apiPost<ChangedPipelines>("/pipelines/bulk", body);
  toast(done(pipelines.filter(({ hasChanged }) => hasChanged).length));
  reload();
}

function List({ pipelines }: { readonly pipelines: readonly string[] }) {
  return (
    <ul>
      {pipelines.map((it) => (
        <li key={it}>{it}</li>
      ))}
    </ul>
  );
}

const why = (reason: string) => (reason === "" ? {} : { reason });

function askForPause(pipelines: readonly string[], done: () => void): void {
  askFor({
    title: `Pause ${plural(pipelines.length, "pipeline")}?`,
    text: (
      <>
        <p>Relays stop taking new events within three seconds and finish those in flight. New events wait.</p>
        <List pipelines={pipelines} />
      </>
    ),
    confirm: "Pause",
    command: (reason) => pipelines.map((it) => command("pause", it, ...flag("reason", reason))).join("\n"),
    run: (reason) =>
      change(
        { action: "pause", pipelines, ...why(reason) },
        (count) => `${plural(count, "pipeline")} ${count === 1 ? "is" : "are"} paused`,
        done,
      ),
  });
}

function askForResume(pipelines: readonly string[], done: () => void): void {
  askFor({
    title: `Resume ${plural(pipelines.length, "pipeline")}?`,
    text: (
      <>
        <p>Their events are delivered again, in order.</p>
        <List pipelines={pipelines} />
      </>
    ),
    confirm: "Resume",
    reason: "none",
    command: () => pipelines.map((it) => command("resume", it)).join("\n"),
    run: () =>
      change(
        { action: "resume", pipelines },
        (count) => `${plural(count, "pipeline")} ${count === 1 ? "is" : "are"} resumed`,
        done,
      ),
  });
}

function askForLimit(pipelines: readonly string[], done: () => void): void {
  askFor({
    title: `Limit ${plural(pipelines.length, "pipeline")}`,
    text: "Rate limit per pipeline and relay, in events per second. Relays apply it within three seconds.",
    confirm: "Set the limit",
    amount: { label: "Events per second", help: "Empty removes the limit. It survives restarts.", initial: "" },
    command: (reason, amount) => {
      const rate = amount === "" ? "off" : `${amount}/s`;
      return pipelines.map((it) => command("limit", it, rate, ...flag("reason", reason))).join("\n");
    },
    run: (reason, amount) => {
      const perSecond = amount === "" ? null : Number(amount);
      const what = perSecond === null ? "no limit" : `a limit of ${perSecond} events per second`;
      return change(
        { action: "limit", pipelines, perSecond, ...why(reason) },
        () => `${plural(pipelines.length, "pipeline")}: ${what}`,
        done,
      );
    },
  });
}
