import { apiPost } from "../../kit/api.ts";
import { Button } from "../../kit/button.tsx";
import { command, flag } from "../../kit/command.ts";
import { askFor } from "../../kit/dialog.tsx";
import { segment } from "../../kit/place.ts";
import { useMay } from "../../kit/session.ts";
import { toast } from "../../kit/toast.tsx";
import type { PipelineStatus } from "../../kit/types.ts";

interface ActionProps {
  readonly it: PipelineStatus;
  reload(): void;
}

/** Pause, resume and limit: each asks first, and says how to do it by the command line. */
export function PipelineActions({ it, reload }: ActionProps) {
  if (!useMay("operator")) return null;
  const { pipeline, pause } = it;
  return (
    <div class="actions">
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
    text: "Relays stop taking new events within three seconds; what is on its way is finished. Events keep coming in and wait.",
    confirm: "Pause",
    command: (reason) => command("pause", pipeline, ...flag("reason", reason)),
    run: async (reason) => {
      await apiPost(`/pipelines/${segment(pipeline)}/pause`, reason === "" ? {} : { reason });
      toast(`${pipeline} is paused`);
      reload();
    },
  });
}

function askForResume({ pipeline, pause }: PipelineStatus, reload: () => void): void {
  askFor({
    title: `Resume ${pipeline}?`,
    text: `${pause?.by ?? "Somebody"} has paused it${pause?.reason ? `: ${pause.reason}` : ""}. Its events go out again, in order.`,
    confirm: "Resume",
    reason: "none",
    command: () => command("resume", pipeline),
    run: async () => {
      await apiPost(`/pipelines/${segment(pipeline)}/resume`);
      toast(`${pipeline} goes on`);
      reload();
    },
  });
}

function askForLimit({ pipeline, limit }: PipelineStatus, reload: () => void): void {
  askFor({
    title: `Limit ${pipeline}`,
    text: "How many events each relay may send in a second. Relays follow within three seconds.",
    confirm: "Set the limit",
    amount: {
      label: "Events a second",
      help: "Empty for no limit. A restart keeps it.",
      initial: limit === null ? "" : String(limit.perSecond),
    },
    command: (reason, amount) =>
      command("limit", pipeline, amount === "" ? "off" : `${amount}/s`, ...flag("reason", reason)),
    run: async (reason, amount) => {
      const perSecond = amount === "" ? null : Number(amount);
      await apiPost(`/pipelines/${segment(pipeline)}/limit`, { perSecond, ...(reason === "" ? {} : { reason }) });
      toast(
        perSecond === null ? `${pipeline} has no limit any more` : `${pipeline}: ${perSecond} events a second at most`,
      );
      reload();
    },
  });
}
