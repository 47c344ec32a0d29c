import { RelayError } from "./errors.ts";

/**
 * Returns a function that loads a client at its first call. Clients are optional peer dependencies: without one the error
 * says what to install.
 */
export function optionalClient<T>(name: string, install: string, load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((cause: unknown) => {
      if (cause instanceof RelayError) throw cause;
      throw new RelayError("CONFIG_INVALID", `${name} is missing, install it: npm install ${install}.`, { cause });
    });
    return loading;
  };
}
