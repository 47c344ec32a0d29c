import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser } from "../servers/chromium.ts";
import { until } from "../servers/until.ts";
import { type ConsolePage, sideScroll, signIn } from "./console-page.ts";
import { type ConsoleStage, consoleStage, TOKENS } from "./console-stage.ts";
import { serverOfFile } from "./service-stage.ts";

/** Each would set the mark, or make an element, if it were ever anything but text. */
const CORPUS = [
  "<script>window.__xss=1</script>",
  '"><img src=x onerror="window.__xss=1">',
  "'><svg onload=window.__xss=1>",
  "javascript:window.__xss=1//",
  '</textarea></title><iframe srcdoc="<script>parent.__xss=1</script>">',
  '<a href="javascript:window.__xss=1">click</a>',
  "data:text/html,<script>parent.__xss=1</script>",
  "{{constructor.constructor('window.__xss=1')()}}",
  "&lt;script&gt;window.__xss=1&lt;/script&gt;",
  "<style>*{display:none}</style><link rel=stylesheet href=x>",
];

const PIPELINE = "shop.outbox->http";
/** What of a hostile text is enough to know that it was shown. */
const SHOWN = "window.__xss";

/** What servers answer with stands in errors, and may be anything. */
const HOSTILE_ERRORS = `
update outbox_relay.failed_events set failure_reason = original_event_id,
  errors = jsonb_build_array(jsonb_build_object('at', now(), 'attempt', 1, 'reason', original_event_id));
update outbox_relay.holds set reason = event_id,
  errors = jsonb_build_array(jsonb_build_object('at', now(), 'attempt', 1, 'reason', event_id));
update outbox_relay.attempts set reason = event_id, error_type = event_id, target = event_id, instance = event_id`;

const WIDE = `wide.${"x".repeat(2_990)}.type`;
const TURNED = "turned\u202egpj.\u0007\u200btype";
const TURNED_CORRELATION = "turned\u202ecorrelation";
const HEADERS = 1_200;
const DEPTH = 5_000;

/** Legal in a table, and too much for a page that shows it as it is. The wide and the turned one are dead as well. */
const AWKWARD = `
insert into shop.outbox (id, aggregate_id, event_type, payload, headers, correlation_id)
select v.*, case when v.column1 in ('wide', 'turned', 'empty') then '${TURNED_CORRELATION}' end from (values ('deep', 'awkward', 'deep', repeat('[', ${DEPTH}) || repeat(']', ${DEPTH}), null::jsonb),
    ('long', 'awkward', 'long', '[' || repeat('1,', 140000) || '1]', null),
    ('wide', 'awkward ' || repeat('k', 3000), '${WIDE}', '{}', null),
    ('turned', 'turned\u202ekey', '${TURNED}', '{"a": "x\u202ey"}', null), ('empty', '', '', '{}', null)) v
union all select 'headers', 'awkward', 'headers', '{}', jsonb_object_agg('x-' || n, 'value ' || n), null from generate_series(1, ${HEADERS}) n;
with dead as (insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type,
    event_key, payload, failure_reason)
  select '${PIPELINE}', id, 'shop', 'outbox', event_type, aggregate_id, '', event_type from shop.outbox where id in ('wide', 'turned', 'empty')
  returning *)
insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason)
select pipeline, 0, original_event_id, event_key, 'dead', true, 3, failure_reason from dead`;

/** In every payload. */
const SECRET = "payload-of-nobody";

const server = serverOfFile();

describe("what is hostile or forbidden, in a real browser", () => {
  let browser: Browser;
  let stage: ConsoleStage;
  let planId = "";

  before(async () => {
    browser = await openBrowser();
    stage = await consoleStage(server());
    stage.judge.refusal = "refused";
    await stage.service.becomes("healthy");
    for (const [number, text] of CORPUS.entries()) {
      await stage.sql(
        `insert into shop.outbox (id, aggregate_id, event_type, payload, headers, correlation_id)
         values ($1, $2, $3, $4, $5, $6), ($1 || ' behind', $2, $3, $4, $5, $6)`,
        [
          `${number} ${text}`,
          `key ${text}`,
          `type ${text}`,
          JSON.stringify({ text, secret: SECRET }),
          JSON.stringify({ [`x ${text}`]: text }),
          `corr ${text}`,
        ],
      );
    }
    await until("all heads are dead", async () => (await stage.dead()) === CORPUS.length);
    await stage.sql(HOSTILE_ERRORS);
    const reason = CORPUS.join(" ");
    const plan = await stage.api("/replays", { action: "replay", subject: "dead", all: true, reason });
    assert.equal(plan.status, 201, JSON.stringify(plan.json));
    planId = (plan.json as { id: string }).id;
    const paused = await stage.api(`/pipelines/${encodeURIComponent(PIPELINE)}/pause`, { reason });
    assert.equal(paused.status, 200, JSON.stringify(paused.json));
  });
  after(async () => {
    await browser?.close();
    await stage?.[Symbol.asyncDispose]();
  });

  test("G4 F3: hostile texts in every part of an event and in every reason are shown as text on every screen", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.operator);
    const seen: string[] = [];
    for (const [path, isShown] of screensOf(planId)) {
      await it.goTo(path);
      assert.deepEqual(await strangers(it), [], `${path} made elements of texts`);
      const text = String(await it.page.evaluate("document.querySelector('main').textContent"));
      seen.push(text, ...(await offered(it)));
      if (isShown) assert.ok(text.includes(SHOWN), `${path} shows the texts:\n${text}`);
    }
    assert.deepEqual(it.complaints, []);
    for (const own of [SECRET, "Plan to discard", "Resume", "Run the plan", "Retry", "Edit and replay", "Limit"]) {
      assert.ok(
        seen.some((text) => text.includes(own)),
        `an operator finds "${own}"`,
      );
    }
  });

  test("G4 F3: a viewer looks and does not touch: no action is offered, and no payload shown", async () => {
    await using it = await signIn(browser, stage.address, TOKENS.viewer);
    for (const [path] of screensOf(planId)) {
      await it.goTo(path);
      assert.deepEqual(await offered(it), [], `${path} offers a viewer what only an operator may do`);
      const text = String(await it.page.evaluate("document.body.textContent"));
      assert.equal(text.includes(SECRET), false, `${path} shows a payload`);
    }
    assert.deepEqual(it.complaints, []);
  });

  test("H1 F3: deep and long payloads, wide types, characters that hide and a thousand headers are shown within bounds", async () => {
    await stage.sql(AWKWARD);
    const paused = await stage.api(`/pipelines/${encodeURIComponent(PIPELINE)}/pause`, { reason: TURNED });
    assert.equal(paused.status, 200, JSON.stringify(paused.json));
    const plan = await stage.api("/replays", { action: "replay", subject: "dead", all: true, reason: TURNED });
    assert.equal(plan.status, 201, JSON.stringify(plan.json));
    await using it = await signIn(browser, stage.address, TOKENS.operator);
    const { page } = it;
    const lengthOf = async () =>
      Number(await page.evaluate("document.querySelector('.code-block pre').textContent.length"));
    const nodes = async () => Number(await page.evaluate("document.querySelectorAll('*').length"));
    await it.goTo("#/events/deep?source=shop.outbox");
    assert.ok((await lengthOf()) < 4 * DEPTH, `${await lengthOf()} characters of ${2 * DEPTH}`);
    await it.goTo("#/events/long?source=shop.outbox");
    assert.ok((await nodes()) < 20_000, `${await nodes()} elements of a long payload`);
    assert.ok((await lengthOf()) >= 280_000, "and all of it is there");

    await it.goTo("#/events/headers?source=shop.outbox");
    const headers = page.getByRole("table", { name: "Headers" }).locator("tbody tr");
    assert.equal(await headers.count(), 50);
    await page.getByRole("button", { name: /^Show/ }).filter({ hasText: "headers" }).click();
    await until("more are shown, and no more than can be", async () => (await headers.count()) === 1_000);
    await page.getByText(/200 more/).waitFor();

    const screens = [
      "#/events",
      "#/events/wide?source=shop.outbox",
      "#/dead-letters",
      "#/dead-letters?view=letters",
      "#/keys",
      `#/correlations/${encodeURIComponent(TURNED_CORRELATION)}`,
      "#/pipelines",
      "#/replays",
      `#/replays/${(plan.json as { id: string }).id}`,
      "#/audit",
    ];
    for (const path of screens) {
      await it.goTo(path);
      assert.equal(await sideScroll(page), null, path);
      const text = String(await page.evaluate("document.querySelector('main').textContent"));
      assert.equal(hides(text), false, `${path} shows a character that hides or turns others`);
      assert.equal(text.includes(WIDE), false, `${path} shows all of a wide type`);
      if (path !== "#/events/wide?source=shop.outbox") assert.match(text, /turned\\u202e/, path);
    }
    await it.goTo("#/events");
    assert.match(await page.getByRole("table", { name: "Events" }).innerText(), /\(empty\)/);
    await it.goTo("#/events/wide?source=shop.outbox");
    await page
      .locator("h1")
      .getByRole("button", { name: /^Show all/ })
      .click();
    await page.locator("h1").getByText(WIDE).waitFor();
    assert.equal(await sideScroll(page), null, "with all of it");
    await it.goTo("#/events/turned?source=shop.outbox");
    const text = String(await page.evaluate("document.body.textContent + document.title"));
    assert.equal(hides(text), false, "nor does the page of the event");
    await it.goTo("#/events/empty?source=shop.outbox");
    assert.match(await page.locator("h1").innerText(), /\(empty\)/);
    assert.deepEqual(it.complaints, []);
  });
});

/** Every screen, and whether texts of events or of people must be seen on it. */
function screensOf(planId: string): readonly (readonly [path: string, isShown: boolean])[] {
  const id = encodeURIComponent(`1 ${CORPUS[1]}`);
  return [
    ["#/", false],
    ["#/pipelines", true],
    ["#/destinations", false],
    ["#/destinations/http", false],
    ["#/subscribers", false],
    ["#/instances", false],
    ["#/events", true],
    [`#/events?q=${encodeURIComponent(`"${CORPUS[0]}"`)}`, false],
    [`#/events/${id}?source=shop.outbox`, true],
    [`#/correlations/${encodeURIComponent(`corr ${CORPUS[1]}`)}`, true],
    ["#/dead-letters", true],
    ["#/keys", true],
    ["#/replays", true],
    [`#/replays/${planId}`, true],
    ["#/audit", true],
    ["#/settings", false],
  ];
}

function hides(text: string): boolean {
  return ["\u0007", "\u200b", "\u202e"].some((it) => text.includes(it));
}

/** Elements and attributes that the console itself never makes. */
async function strangers({ page }: ConsolePage): Promise<readonly string[]> {
  return (await page.evaluate(`(() => {
    const found = [...document.querySelectorAll("#console script, #console iframe, #console img, #console object, " +
      "#console embed, #console style, #console link, #console base, #console meta, #console form[action]")];
    for (const element of document.querySelectorAll("#console *")) {
      for (const { name, value } of element.attributes) {
        if (name.startsWith("on") || /^\\s*(?:javascript|data|vbscript):/i.test(value) && ["href", "src", "action", "formaction", "xlink:href"].includes(name)) found.push(element);
      }
    }
    if (window.__xss !== undefined) found.push({ outerHTML: "a script has run" });
    return found.map(({ outerHTML }) => outerHTML.slice(0, 200));
  })()`)) as string[];
}

const ACTIONS = /^(?:replay|discard|edit|forget|pause|resume|limit|retry|skip|run|cancel|make a plan|plan)\b/i;

/** Enabled buttons that would change something. */
async function offered({ page }: ConsolePage): Promise<readonly string[]> {
  const buttons = await page.locator("main button:enabled").allInnerTexts();
  return buttons.map((text) => text.trim()).filter((text) => ACTIONS.test(text));
}
