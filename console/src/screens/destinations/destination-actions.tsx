import { ActionButton } from "../../kit/action-button.tsx";
import { apiPost } from "../../kit/api.ts";
import { command, flag } from "../../kit/command.ts";
import { askFor } from "../../kit/dialog.tsx";
import { ErrorBox } from "../../kit/error-box.tsx";
import { plural } from "../../kit/format.ts";
import { segment } from "../../kit/place.ts";
import { toast } from "../../kit/toast.tsx";
import type { ChangedPipelines, KnownDestination } from "../../kit/types.ts";
import { useAction } from "../../kit/use-api.ts";

interface ActionProps {
  readonly it: KnownDestination;
  readonly isPaused: boolean;
  reload(): void;
}

const changedIn = ({ pipelines }: ChangedPipelines) => pipelines.filter(({ hasChanged }) => hasChanged).length;

/**
 * One switch for all pipelines of the destination. It does not ask for confirmation: in an incident every second counts,
 * a pause loses nothing, and Resume is in the same place.
 */
export function DestinationActions({ it, isPaused, reload }: ActionProps) {
  const { destination, pipelines } = it;
  const path = `/destinations/${segment(destination)}`;
  const all = plural(pipelines.length, "pipeline");
  const change = useAction(async (verb: "pause" | "resume") => {
    const count = changedIn(await apiPost<ChangedPipelines>(`${path}/${verb}`));
    toast(`${destination}: ${plural(count, "pipeline")} ${verb === "pause" ? "paused" : "resumed"}.`);
    reload();
  });
  return (
    <>
      {change.error !== null && <ErrorBox error={change.error} />}
      <ActionButton icon="limit" onClick={() => askForLimit(it, reload)}>
        Limit
      </ActionButton>
      {isPaused ? (
        <ActionButton icon="play" kind="primary" isBusy={change.isBusy} onClick={() => void change.run("resume")}>
          {`Resume ${all}`}
        </ActionButton>
      ) : (
        <ActionButton
          icon="pause"
          kind="primary"
          isBusy={change.isBusy}
          title="Relays stop sending within three seconds. Events wait in the outbox; nothing is lost."
          onClick={() => void change.run("pause")}
        >
          {`Pause ${all}`}
        </ActionButton>
      )}
    </>
  );
}

interface BulkProps {
  readonly destinations: readonly string[];
  done(): void;
}

/** The same switch for several destinations. */
export function DestinationBulk({ destinations, done }: BulkProps) {
  const all = plural(destinations.length, "destination");
  const change = useAction(async (verb: "pause" | "resume") => {
    let count = 0;
    for (const it of destinations) {
      count += changedIn(await apiPost<ChangedPipelines>(`/destinations/${segment(it)}/${verb}`));
    }
    toast(`${all}: ${plural(count, "pipeline")} ${verb === "pause" ? "paused" : "resumed"}.`);
    done();
  });
  return (
    <>
      {change.error !== null && <ErrorBox error={change.error} />}
      <ActionButton icon="play" isBusy={change.isBusy} onClick={() => void change.run("resume")}>
        {`Resume ${all}`}
      </ActionButton>
      <ActionButton icon="pause" kind="primary" isBusy={change.isBusy} onClick={() => void change.run("pause")}>
        {`Pause ${all}`}
      </ActionButton>
    </>
  );
}

function askForLimit({ destination, limit, pipelines }: KnownDestination, reload: () => void): void {
  askFor({
    title: `Limit ${destination}`,
    text: `Rate limit per relay and for each of its ${plural(pipelines.length, "pipeline")}, in events per second. The rates of pipelines and relays add up. Relays apply it within three seconds.`,
    confirm: "Set the limit",
    amount: {
      label: "Events per second, for each pipeline and relay",
      help: "Empty removes the limit. It survives restarts and applies to pipelines that are added later.",
      initial: limit === null ? "" : String(limit.perSecond),
    },
    command: (reason, amount) =>
      command("limit", "--destination", destination, amount === "" ? "off" : `${amount}/s`, ...flag("reason", reason)),
    run: async (reason, amount) => {
      const perSecond = amount === "" ? null : Number(amount);
      const body = { perSecond, ...(reason === "" ? {} : { reason }) };
      await apiPost<ChangedPipelines>(`/destinations/${segment(destination)}/limit`, body);
      toast(perSecond === null ? `Removed the limit of ${destination}.` : `${destination}: at most ${perSecond}/s.`);
      reload();
    },
  });
}
