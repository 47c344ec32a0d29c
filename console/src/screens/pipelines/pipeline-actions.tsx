import { apiPost } from "../../kit/api.ts";
import { Button } from "../../kit/button.tsx";
import { command, flag } from "../../kit/command.ts";
import { askFor } from "../../kit/dialog.tsx";
import { segment } from "../../kit/place.ts";
import { useMay } from "../../kit/session.ts";
import { toast } from "../../kit/toast.tsx";
import type { ForgottenPipeline, PipelineStatus } from "../../kit/types.ts";

interface ActionProps {
  readonly it: PipelineStatus;
  reload(): void;
}

/** Pause, resume and limit. Each asks for confirmation and shows its CLI command. */
export function PipelineActions({ it, reload }: ActionProps) {
  if (!useMay("operator")) return null;
  const { pipeline, pause } = it;
  return (
    <div class="actions">
      {!it.isServed && (
        <Button icon="bin" label={`Forget ${pipeline}`} onClick={() => askToForget(it, reload)}>
          Forget
        </Button>
      )}
      <Button icon="limit" label={`Limit ${pipeline}`} onClick={() => askForLimit(it, reload)}>
        Limit
      </Button>
      {pause === null ? (
        <Button icon="pause" label={`Pause ${pipeline}`} onClick={() => askForPause(it, reload)}>
          Pause
        </Button>
      ) : (
        <Button kind="primary" icon="play" label={`Resume ${pipeline}`} onClick={() => askForResume(it, reload)}>
          Resume
        </Button>
      )}
    </div>
  );
}

function askForPause({ pipeline }: PipelineStatus, reload: () => void): void {
  askFor({
    title: `Pause ${pipeline}?`,
    text: "Relays stop reading new events within three seconds and finish those in flight. New events wait in the outbox.",
    confirm: "Pause",
    command: (reason) => command("pause", pipeline, ...flag("reason", reason)),
    run: async (reason) => {
      await apiPost(`/pipelines/${segment(pipeline)}/pause`, reason === "" ? {} : { reason });
      toast(`${pipeline} is paused`);
      reload();
    },
  });
}

/** Asks the service first what would be lost, so that the dialog can show it. */
async function askToForget({ pipeline }: PipelineStatus, reload: () => void): Promise<void> {
  const path = `/pipelines/${segment(pipeline)}/forget`;
  const plan = await apiPost<ForgottenPipeline>(path, { dryRun: true }).catch((error: unknown) => {
    toast(error instanceof Error ? error.message : String(error), { tone: "bad" });
    return null;
  });
  if (plan === null) return;
  const lost = plan.givenUp.length === 0 ? "No undelivered events are lost." : `Given up: ${plan.givenUp.join("; ")}.`;
  const giveUp = plan.givenUp.length > 0 ? ["--give-up-events"] : [];
  askFor({
    title: `Forget ${pipeline}?`,
    text: `The pipeline is removed with its lanes and its checkpoint. ${lost}`,
    confirm: plan.givenUp.length > 0 ? "Forget it and give up its events" : "Forget it",
    command: (reason) => command("pipeline", "forget", pipeline, ...giveUp, ...flag("reason", reason)),
    run: async (reason) => {
      await apiPost(path, { giveUpEvents: giveUp.length > 0, ...(reason === "" ? {} : { reason }) });
      toast(`Removed ${pipeline}`);
      reload();
    },
  });
}

function askForResume({ pipeline, pause }: PipelineStatus, reload: () => void): void {
  askFor({
    title: `Resume ${pipeline}?`,
    text: `Paused by ${pause?.by ?? "an operator"}${pause?.reason ? `: ${pause.reason}` : ""}. Its events are delivered again, in order.`,
    confirm: "Resume",
    reason: "none",
    command: () => command("resume", pipeline),
    run: async () => {
      await apiPost(`/pipelines/${segment(pipeline)}/resume`);
      toast(`${pipeline} is resumed`);
      reload();
    },
  });
}

function askForLimit({ pipeline, limit }: PipelineStatus, reload: () => void): void {
  askFor({
    title: `Limit ${pipeline}`,
    text: "Rate limit per relay, in events per second. Relays apply it within three seconds.",
    confirm: "Set the limit",
    amount: {
      label: "Events per second",
      help: "Empty removes the limit. It survives restarts.",
      initial: limit === null ? "" : String(limit.perSecond),
    },
    command: (reason, amount) =>
      command("limit", pipeline, amount === "" ? "off" : `${amount}/s`, ...flag("reason", reason)),
    run: async (reason, amount) => {
      const perSecond = amount === "" ? null : Number(amount);
      await apiPost(`/pipelines/${segment(pipeline)}/limit`, { perSecond, ...(reason === "" ? {} : { reason }) });
      toast(
        perSecond === null ? `Removed the limit of ${pipeline}` : `${pipeline}: at most ${perSecond} events per second`,
      );
      reload();
    },
  });
}
