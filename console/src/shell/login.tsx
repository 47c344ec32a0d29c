import { useEffect, useState } from "preact/hooks";
import { apiPost, apiUrl } from "../kit/api.ts";
import { Button } from "../kit/button.tsx";
import { ErrorBox } from "../kit/error-box.tsx";
import { hasLapsed, loadSession } from "../kit/session.ts";
import type { Session } from "../kit/types.ts";
import { useAction } from "../kit/use-api.ts";

/** Exchanges the token for a cookie that scripts cannot read. The token is not stored. */
export function Login({ session }: { readonly session: Session }) {
  useEffect(() => {
    document.title = `Sign in · ${session.service}`;
    rememberPlace();
    // The issuer usually signs the user in again without a prompt and returns the current role.
    if (hasLapsed() && session.logins.includes("oidc")) location.assign(apiUrl("/login/oidc"));
  }, [session.service, session.logins]);
  return (
    <main class="login">
      <div class="login-box">
        <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
          <path d="M7 11h8a5 5 0 0 1 5 5 5 5 0 0 0 5 5" />
          <circle cx="8" cy="21" r="3" />
          <circle cx="24" cy="11" r="3" />
        </svg>
        <h1>{session.service}</h1>
        {session.access === "off" ? <Closed /> : <Logins logins={session.logins} />}
        <p class="faint">outbox-relay {session.version}</p>
      </div>
    </main>
  );
}

function Closed() {
  return (
    <p>
      The console is disabled because it is reachable through the network or a proxy and no login is configured. Set{" "}
      <code>ADMIN_TOKEN</code>, or open the console on the machine of the service (<code>HOST=127.0.0.1</code>), without
      a proxy.
    </p>
  );
}

function Logins({ logins }: { readonly logins: Session["logins"] }) {
  const [token, setToken] = useState("");
  const action = useAction(async () => {
    await apiPost("/login", { token: token.trim() });
    await loadSession();
  });
  return (
    <>
      {logins.includes("oidc") && (
        <Button kind="primary" href={apiUrl("/login/oidc")}>
          Sign in with your account
        </Button>
      )}
      {logins.length > 1 && <div class="or">or</div>}
      {logins.includes("token") && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (token.trim() !== "") void action.run();
          }}
        >
          <label class="field">
            <span>Token</span>
            <input
              type="password"
              autocomplete="current-password"
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
            <small>The ADMIN_TOKEN of the service, or one of its named tokens.</small>
          </label>
          {action.error !== null && <ErrorBox error={action.error} />}
          <Button
            type="submit"
            kind={logins.includes("oidc") ? "plain" : "primary"}
            isBusy={action.isBusy}
            isDisabled={token.trim() === ""}
          >
            Sign in
          </Button>
        </form>
      )}
    </>
  );
}

const NAME = "outbox-relay.place";

/** The issuer redirects back without the fragment: this restores the screen that the user opened. */
function rememberPlace(): void {
  try {
    if (location.hash !== "") sessionStorage.setItem(NAME, location.hash);
  } catch {
    // Storage is blocked: the user starts at the overview.
  }
}

export function returnToPlace(): void {
  try {
    const place = sessionStorage.getItem(NAME);
    sessionStorage.removeItem(NAME);
    if (place !== null && location.hash === "") location.hash = place;
  } catch {
    // Storage is blocked.
  }
}
