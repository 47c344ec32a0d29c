// Loaded before everything else: what the project's sources import of the clients under test comes from the scratch application.
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const app = process.env.CLIENTS_APP;
const packages = (process.env.CLIENTS_PACKAGES ?? "").split(" ");
const isOfTests = /\.test\.ts$|\/test\//;

if (app !== undefined) {
  const parentURL = pathToFileURL(join(app, "package.json")).href;
  registerHooks({
    resolve(specifier, context, next) {
      const from = context.parentURL ?? "";
      // The tests speak to the servers with the clients of the project, unless they hand their own client over.
      const isOurs =
        !from.includes("/node_modules/") && (process.env.CLIENTS_IN_TESTS !== undefined || !isOfTests.test(from));
      const isClient = packages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
      return next(specifier, isOurs && isClient ? { ...context, parentURL } : context);
    },
  });
}
