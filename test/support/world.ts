/** The stage of the effect tests: a harness on the shared server, and the payments service as the world outside. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished } from 'vitest';
import { createPaymentsControl, type PaymentsControl } from '../../examples/payments/control.ts';
import { startPayments } from '../../examples/payments/service.ts';
import type { DefinedAgent, Session, SessionState, ToolCall } from '../../src/index.ts';
import {
  createHarness,
  type Harness,
  openWire,
  type ReplyToolCall,
  type Script,
  type ScriptedModel,
  type ScriptedTurn,
  type Wire,
} from '../../src/testing/index.ts';
import { effects, parallel, priced, rolling, silent, slowToBegin } from './effect-agents.ts';
import { expectFoldEqualsLive } from './fold.ts';
import { polled } from './polled.ts';
import './runtime.ts';

const AGENTS = new URL('./effect-agents.ts', import.meta.url);

/** The refund that most stories are about: of order 1001, in full. */
export const PEN = { chargeId: 'ch_1001', cents: 4_200, reason: 'broken' } as const;

/** A turn in which the model calls one tool. */
export function calls(...toolCalls: (string | [name: string, args: object])[]): ScriptedTurn {
  return {
    toolCalls: toolCalls.map(
      (call): ReplyToolCall =>
        typeof call === 'string' ? { name: call, args: PEN } : { name: call[0], args: call[1] },
    ),
  };
}

/** A harness with the payments service beside it. */
export interface World extends Harness {
  readonly control: PaymentsControl;
  /** Stops the service and cuts its connections. Everything it has answered is on its disk. */
  stopService(): Promise<void>;
  /** Starts it again where it was. */
  startService(): Promise<void>;
  /** A wire to Temporal for a worker process (`connection`), which the test can cut. */
  openWire(): Promise<Wire>;
  /** Starts a session with a message; the script answers it. */
  begin(agent?: string): Promise<Session>;
  /** Waits until the call `call_<turn>_<n>` is in a status. */
  untilCall(session: Session, callId: string, status: ToolCall['status']['kind']): Promise<ToolCall>;
  /**
   * The end of each story: the fold is the live state, and no request has shown a call's idempotency key to the model.
   * Resolves with the state.
   */
  check(session: Session): Promise<SessionState>;
}

/** Opens a world for the running test, and closes it when the test has finished. */
export async function openWorld(
  script: Script | readonly ScriptedTurn[],
  options: { ignoreKeys?: boolean; agents?: readonly DefinedAgent[]; module?: URL } = {},
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'effects-'));
  const ledger = { ledger: join(folder, 'ledger.jsonl'), honourKeys: options.ignoreKeys !== true };
  // In this process: `payments-process.test.ts` kills one of its own.
  let service = await startPayments(ledger);
  const { url, port } = service;
  onTestFinished(async () => {
    await service.stop();
    rmSync(folder, { recursive: true });
  });
  // Workers in this process read the variable, too.
  process.env['PAYMENTS_URL'] = url;
  const harness = await createHarness({
    script,
    agents: options.agents ?? [effects, parallel, priced, rolling, silent, slowToBegin],
    module: options.module ?? AGENTS,
    server: inject('temporal'),
    env: { PAYMENTS_URL: url },
  });
  onTestFinished(() => harness.stop());
  const findCall = async (session: Session, callId: string): Promise<ToolCall | undefined> =>
    (await session.calls()).items.find(({ id }) => id === callId);
  return {
    ...harness,
    // Workflow code in this thread: see `openStage`. A worker that takes over from a dead process needs no process of
    // its own.
    startWorker: (own = {}) => harness.startWorker({ debugMode: true, ...own }),
    control: createPaymentsControl(url),
    stopService: () => service.stop(),
    startService: async () => {
      service = await startPayments({ ...ledger, port });
    },
    openWire: async () => {
      const wire = await openWire(harness.address);
      onTestFinished(() => wire.close());
      return wire;
    },
    begin: (agent = 'effects') => harness.startSession(agent, { message: 'Please.' }),
    untilCall: async (session, callId, status) => {
      let call: ToolCall | undefined;
      await harness.until(session, () => true);
      await polled(
        async () => {
          call = await findCall(session, callId);
          return call?.status.kind === status;
        },
        () => `${status}: ${JSON.stringify(call)}`,
      );
      return call as ToolCall;
    },
    check: async (session) => {
      const state = await expectFoldEqualsLive(harness.client, session);
      expectKeysUnseen(harness.model, state);
      return state;
    },
  };
}

/** Fails when a request to the model holds the idempotency key of a call. */
function expectKeysUnseen({ requests }: ScriptedModel, { calls: log }: SessionState): void {
  expect(requests).not.toEqual([]);
  const bodies = requests.map(({ request }) => JSON.stringify(request.body));
  const shown = log.filter(({ idempotencyKey }) => bodies.some((body) => body.includes(idempotencyKey)));
  expect(shown).toEqual([]);
}
