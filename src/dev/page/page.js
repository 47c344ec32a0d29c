// The page of `outbox-relay dev`. Everything it shows comes once a second from dev/events, whole each time.
import { drawChart } from "./charts.js";

const MESSAGES_SHOWN = 12;

const byId = (id) => document.getElementById(id);
const count = (value) => Math.round(value).toLocaleString("en-US");
const rate = (value) => (value < 10 ? value.toFixed(1) : count(value));
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
const sum = (list, field) => list.reduce((total, each) => total + each[field], 0);

const events = (value) => (value === 1 ? "1 event" : `${count(value)} events`);
const times = (value) => (Number(value) === 1 ? "once" : `${value} times`);

function duration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000
    ? `${(ms / 1_000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} m ${Math.round((ms % 60_000) / 1_000)} s`;
}

/** For what counts up: without parts of a second it does not twitch. */
function seconds(ms) {
  const whole = Math.max(0, Math.floor(ms / 1_000));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} m ${whole % 60} s`;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

function show(id, text, tone) {
  const shown = byId(id);
  if (shown.textContent !== text) shown.textContent = text;
  if (tone !== undefined) shown.dataset.tone = tone;
}

/** Draws only what changed, so that focus and selection stay where they are. */
const drawn = new Map();
function redraw(id, what, make) {
  const key = JSON.stringify(what);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  byId(id).replaceChildren(...make());
}

function render(state) {
  renderPills(state);
  renderFigures(state);
  renderCharts(state);
  renderSwitches(state);
  renderFailures(state);
  redraw("source-rows", state.sources, () => state.sources.map(sourceRow));
  renderMessages(state);
  redraw("journal", state.journal, () => state.journal.map(journalEntry));
}

function renderPills({ nowMs, relays, destination, startingWith }) {
  const [first, second] = relays;
  show(
    "relay-pill",
    ...(first === undefined ? [`starting ${startingWith}`, "wait"] : relayWords("relay", first, nowMs)),
  );
  byId("second-pill").hidden = second === undefined || second.state === "stopped";
  if (second !== undefined) show("second-pill", ...relayWords("second relay", second, nowMs));
  const { broker, circuit, faults } = destination;
  const name = broker ?? "built-in destination";
  if (circuit !== null) show("destination-pill", `${name}: circuit open`, "bad");
  else if (faults.down) show("destination-pill", `${name}: down`, "bad");
  else if (faults.slow || faults.flaky) show("destination-pill", `${name}: ${faults.slow ? "slow" : "flaky"}`, "wait");
  else show("destination-pill", `${name}: takes events`, "good");
}

function relayWords(name, { state, pid, sinceMs, kills, lanes }, nowMs) {
  const since = seconds(nowMs - sinceMs);
  const killed = kills > 0 ? `, killed ${times(kills)}` : "";
  const words = {
    running: [`${name} ${pid} alive for ${since}, ${lanes} lanes${killed}`, lanes > 0 ? "good" : "wait"],
    starting: [`${name} ${pid} starting${killed}`, "wait"],
    dead: [`${name} dead for ${since}${killed}`, "bad"],
    stopped: [`${name} stopped`, "wait"],
  };
  return words[state];
}

function renderFigures({ samples, sources, destination, databaseTrouble }) {
  const last = samples[samples.length - 1];
  if (last !== undefined) {
    show("waiting", count(last.waiting));
    show("lag", duration(last.lagMs));
    show("in", rate(last.in));
    show("out", rate(last.out));
    show("delivered", count(sum(sources, "delivered")));
  }
  const isWatched = destination.broker === null;
  const promise = (id, value, tone) => show(id, isWatched ? count(value) : "–", isWatched ? tone : "");
  promise("lost", destination.lost, destination.lost === 0 ? "good" : "bad");
  promise("out-of-order", destination.outOfOrder, destination.outOfOrder === 0 ? "good" : "bad");
  promise("repeated", destination.repeated, destination.repeated === 0 ? "good" : "wait");
  if (!isWatched) {
    show("promises-hint", `Events go to ${destination.broker}: what arrives there is counted there, not here.`);
  }
  notice(
    databaseTrouble === null
      ? null
      : `The database does not answer: ${databaseTrouble}. The figures are the last known ones.`,
  );
}

function notice(text) {
  byId("notice").hidden = text === null;
  if (text !== null) show("notice", text);
}

function renderCharts({ nowMs, samples }) {
  const throughput = drawChart(byId("throughput"), {
    nowMs,
    samples,
    lines: [
      { field: "in", className: "in" },
      { field: "out", className: "out" },
    ],
    least: 10,
  });
  show("throughput-max", `top ${count(throughput)}`);
  const lag = drawChart(byId("lag-chart"), {
    nowMs,
    samples,
    lines: [{ field: "lagMs", className: "lag", area: true }],
    least: 1_000,
  });
  show("lag-max", `top ${duration(lag)}`);
}

function renderSwitches({ destination, relays, traffic, startingWith }) {
  const hasSecond = relays.length > 1 && relays[1].state !== "stopped";
  const places = { ...destination.faults, traffic: traffic.isOn, second: hasSecond };
  for (const button of document.querySelectorAll("[data-switch]")) {
    button.setAttribute("aria-checked", String(places[button.dataset.switch]));
  }
  const hint = byId("faults-hint");
  hint.hidden = destination.broker === null;
  if (destination.broker !== null) {
    show(
      "faults-hint",
      `Events go to ${destination.broker}. That is yours: faults of the destination are only there for the built-in one.`,
    );
  }
  const ofDestination = new Set(["down", "slow", "flaky", "mended", "poison"]);
  for (const button of document.querySelectorAll("[data-switch], [data-act]")) {
    const name = button.dataset.switch ?? button.dataset.act;
    button.disabled = startingWith !== null || (destination.broker !== null && ofDestination.has(name));
  }
}

function renderFailures({ deadLetters, retrying, sources }) {
  const dead = sum(sources, "dead");
  const parked = sum(sources, "parked");
  const words = [];
  if (dead > 0) words.push(`${count(dead)} dead`);
  if (parked > 0) words.push(`${count(parked)} parked behind them`);
  if (retrying.length > 0) words.push(`${count(retrying.length)} tried again`);
  show("failure-count", words.join(", "));
  byId("no-failures").hidden = deadLetters.length + retrying.length > 0;
  redraw("failure-list", [deadLetters, retrying], () => [...deadLetters.map(deadLetter), ...tried(retrying)]);
}

function deadLetter({ letterId, source, type, key, reason, lastFailedAt }) {
  const text = element("span", null);
  text.append(
    element("b", "dead "),
    `${type} of ${key ?? "no key"} in ${source}, ${clock(Date.parse(lastFailedAt))}: ${reason}`,
  );
  const replay = element("button", "Replay", { type: "button", "aria-label": `Replay ${type} of ${key}` });
  replay.addEventListener("click", () => ask("dev/replay", { letterId }, replay));
  return item("dead", text, replay);
}

/** In one line: they come and go, and the page must not jump each time. */
function tried(retrying) {
  if (retrying.length === 0) return [];
  const [{ pipeline, key, attempts, reason }] = retrying;
  const where = `${key ?? "an event without a key"} in ${pipeline.split("->")[0]}`;
  const text = element("span", null);
  text.append(
    element("b", "retry "),
    `${events(retrying.length)}, the last one ${where}, failed ${times(attempts)}: ${reason}`,
  );
  return [item("retrying", text)];
}

function item(state, ...content) {
  const made = element("li", null, { "data-state": state });
  made.append(...content);
  return made;
}

function sourceRow({ source, inPerS, outPerS, waiting, parked, dead, oldestMs, delivered }) {
  const row = element("tr", null);
  const cells = [
    rate(inPerS),
    rate(outPerS),
    count(waiting),
    count(parked),
    count(dead),
    duration(oldestMs),
    count(delivered),
  ];
  row.append(element("th", source, { scope: "row" }), ...cells.map((cell) => element("td", cell)));
  return row;
}

function renderMessages({ messages, destination }) {
  byId("messages").hidden = messages.length === 0;
  byId("no-messages").hidden = messages.length > 0;
  if (destination.broker !== null) show("no-messages", `They go to ${destination.broker}; look there.`);
  redraw("message-rows", messages, () => messages.slice(0, MESSAGES_SHOWN).map(messageRow));
}

function messageRow({ atMs, type, key, latencyMs, isRepeated, payload, id }) {
  const row = element("tr", null, { title: `${id}\n${payload}` });
  const after = latencyMs === null ? "" : duration(latencyMs);
  row.append(element("td", clock(atMs)), element("td", type), element("td", key ?? "none"));
  row.append(element("td", isRepeated ? `${after}, again` : after, isRepeated ? { class: "repeated" } : {}));
  return row;
}

function journalEntry({ atMs, tone, text }) {
  const entry = element("li", null, { "data-tone": tone });
  entry.append(element("time", clock(atMs)), element("span", text));
  return entry;
}

async function ask(path, body, button) {
  button.disabled = true;
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) notice((await answer.json()).error.message);
  } catch {
    notice("The dev process does not answer. Is it still running?");
  } finally {
    button.disabled = false;
    button.focus();
  }
}

for (const button of document.querySelectorAll("[data-switch]")) {
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-checked") !== "true";
    button.setAttribute("aria-checked", String(on));
    ask("dev/faults", { fault: button.dataset.switch, on }, button);
  });
}
for (const button of document.querySelectorAll("[data-act]")) {
  button.addEventListener("click", () => ask("dev/faults", { fault: button.dataset.act }, button));
}

const feed = new EventSource("dev/events");
feed.addEventListener("message", ({ data }) => render(JSON.parse(data)));
feed.addEventListener("error", () => {
  show("relay-pill", "not connected", "bad");
  notice("The dev process does not answer. It is looked for again every few seconds; `npm start` starts it.");
});
