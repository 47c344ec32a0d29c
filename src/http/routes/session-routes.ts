import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import { sessionMark } from "../auth/ended-sessions.ts";
import type { LoginNotes } from "../auth/login-notes.ts";
import { oidcRoutes } from "../auth/oidc-routes.ts";
import { noSessionCookie, sessionCookie } from "../auth/session.ts";
import type { Asking, Guard } from "../guard.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { ok, type Route, route } from "../route.ts";
import { sessionSchema } from "../schemas/service.ts";

/** What the login routes need. */
export interface SessionParts {
  readonly guard: Guard;
  readonly notes: LoginNotes;
  readonly clock: Clock;
  readonly service: string;
  readonly version: string;
}

export function sessionRoutes(parts: SessionParts): Route[] {
  const { guard } = parts;
  return [
    route({
      method: "GET",
      path: "/api/v1/session",
      id: "session",
      summary: "The caller's identity, and the available logins",
      access: "open",
      answers: { 200: { description: "Also without a login", schema: sessionSchema } },
      handle: async (asking) => {
        await guard.prepare(asking.headers);
        return ok(sessionAnswer(parts, { ...asking, method: "GET" }));
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/login",
      id: "login",
      summary: "Start a session of the console with a token",
      access: "open",
      body: z.strictObject({ token: z.string().min(1).max(1_000) }),
      answers: {
        204: { description: "The response sets the session cookie", schema: null },
        401: { description: "The token is wrong", schema: errorSchema },
        409: { description: "No login is needed", schema: errorSchema },
      },
      handle: async (asking) => {
        if (guard.modeFor(asking) === "open") {
          throw new HttpError(409, "LOGIN_NOT_NEEDED", "The API is open on this machine: no login is needed.");
        }
        const { address, headers } = asking;
        const { name } = guard.tokenOf({ ...asking, method: "POST" }, asking.body.token);
        parts.notes.loggedIn({ by: name, via: "console" }, { by: "token", address });
        const owner = { by: "token", name, groups: [] } as const;
        const cookie = sessionCookie(guard.access, owner, headers, parts.clock.wallMs());
        return { status: 204, body: null, headers: { "set-cookie": cookie } };
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/logout",
      id: "logout",
      summary: "End the session, for this browser and for every copy of its cookie",
      access: "open",
      answers: { 204: { description: "The session has ended", schema: null } },
      handle: async ({ address, headers }) => {
        const ended = guard.endSession(headers);
        if (ended !== null) {
          const { by, id, name } = ended;
          parts.notes.loggedOut({ by: name, via: "console" }, { by, session: sessionMark(id), address });
        }
        return { status: 204, body: null, headers: { "set-cookie": noSessionCookie(guard.access, headers) } };
      },
    }),
    ...oidcRoutes(parts),
  ];
}

function sessionAnswer({ guard, service, version }: SessionParts, asking: Asking) {
  const { oidc, tokens } = guard.access;
  return {
    service,
    version,
    access: guard.modeFor(asking),
    logins: [...(tokens.length > 0 ? ["token"] : []), ...(oidc === null ? [] : ["oidc"])],
    identity: identityOrNull(guard, asking),
    isDemo: false,
  };
}

/** The identity of the caller; null for one that other routes would refuse. */
function identityOrNull(guard: Guard, asking: Asking) {
  try {
    const { expiresAt, kind, maySeePayloads, name, role } = guard.identify(asking);
    return { name, by: kind, role, maySeePayloads, expiresAt: expiresAt?.toISOString() ?? null };
  } catch (error) {
    if (error instanceof HttpError) return null;
    throw error;
  }
}
