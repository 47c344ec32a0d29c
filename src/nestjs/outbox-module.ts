import type { DynamicModule, FactoryProvider, ModuleMetadata } from "@nestjs/common";
import type { AnyEvents } from "../outbox/event-map.ts";
import { createOutbox, type OutboxOptions } from "../outbox/outbox.ts";
import { OutboxHealthIndicator } from "./outbox-health.ts";
import { OutboxRelay, type RelayInProcess } from "./outbox-relay.ts";
import { OutboxService } from "./outbox-service.ts";

/** Options of `OutboxModule.forRoot`. */
export interface OutboxModuleOptions<Events extends object = AnyEvents> extends OutboxOptions<Events> {
  /** Creates the relay that runs in this process. Absent: this process only writes, and another one relays. */
  readonly relay?: () => RelayInProcess | Promise<RelayInProcess>;
  /** How long a shutdown waits for the backlog to be delivered, 5 s by default; 0 leaves it to the next start. */
  readonly drainMs?: number;
}

/** Options of `OutboxModule.forRootAsync`. */
export interface OutboxModuleAsyncOptions<Events extends object = AnyEvents> extends Pick<ModuleMetadata, "imports"> {
  /** Providers that the factory receives as arguments. */
  readonly inject?: NonNullable<FactoryProvider["inject"]>;
  readonly useFactory: (...injected: never[]) => OutboxModuleOptions<Events> | Promise<OutboxModuleOptions<Events>>;
}

const OPTIONS = Symbol("outbox-relay options");
const DRAIN_MS = 5_000;

/** Global: import it once, in the root module. It needs no decorators, so it runs in every Nest setup. */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest knows a module by its class.
export class OutboxModule {
  static forRoot<Events extends object = AnyEvents>(options: OutboxModuleOptions<Events>): DynamicModule {
    return moduleWith({ provide: OPTIONS, useFactory: () => options }, []);
  }

  /** Options from a factory, which can inject other providers. */
  static forRootAsync<Events extends object = AnyEvents>(options: OutboxModuleAsyncOptions<Events>): DynamicModule {
    const useFactory = options.useFactory as FactoryProvider["useFactory"];
    return moduleWith({ provide: OPTIONS, useFactory, inject: options.inject ?? [] }, options.imports ?? []);
  }
}

function moduleWith(options: FactoryProvider, imports: NonNullable<ModuleMetadata["imports"]>): DynamicModule {
  return {
    module: OutboxModule,
    global: true,
    imports,
    providers: [
      options,
      {
        provide: OutboxService,
        useFactory: (given: OutboxModuleOptions) => new OutboxService(createOutbox(given)),
        inject: [OPTIONS],
      },
      {
        provide: OutboxRelay,
        useFactory: ({ relay, drainMs }: OutboxModuleOptions) => new OutboxRelay(relay, drainMs ?? DRAIN_MS),
        inject: [OPTIONS],
      },
      {
        provide: OutboxHealthIndicator,
        useFactory: (relay: OutboxRelay) => new OutboxHealthIndicator(relay),
        inject: [OutboxRelay],
      },
    ],
    exports: [OutboxService, OutboxRelay, OutboxHealthIndicator],
  };
}
