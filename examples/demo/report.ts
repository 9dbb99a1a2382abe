/** The end of the demo: what there is to see, and whether it is what was claimed. */
import type { Client } from '@temporalio/client';
import { type Checkpoint, type Phase, TemporalSaver } from 'perdure';
import { readRecordFile } from 'perdure/testing';
import { createPaymentsControl } from '../payments/control.ts';
import { claims, type Evidence } from './evidence.ts';
import { readIdentities, readJournal } from './journal.ts';
import type { Ending } from './play.ts';
import type { Stage } from './stage.ts';
import { type Story, timeOfDay } from './story.ts';

/** Shows the ledger, the tool-call log and the checkpoints, and checks the claims; false when one does not hold. */
export async function report(story: Story, stage: Stage, ending: Ending): Promise<boolean> {
  const ledger = await createPaymentsControl(stage.paymentsUrl).refunds();
  if (ending.kind === 'not_refunded') {
    story.title('Checked');
    story.check(ledger.length === 0, `nothing was refunded: the ledger has ${ledger.length} rows`);
    story.detail('Without a refund there is no crash to recover from. Run it again, and approve.');
    return ledger.length === 0;
  }
  const evidence = await gather(stage, ledger, ending);
  const { state } = evidence;
  showLedger(story, evidence);
  showCalls(story, evidence);
  showCheckpoints(story, await new TemporalSaver(stage.client).list(ending.sessionId, { limit: 100 }));
  const checked = claims(evidence);
  story.title('Checked');
  for (const { text, holds } of checked) story.check(holds, text);
  const { uiUrl, namespace } = stage.server;
  story.title("In Temporal's web UI, while it runs");
  story.command(`${uiUrl ?? ''}/namespaces/${namespace}/workflows/${state.sessionId}/${state.runId}/history`);
  return checked.every(({ holds }) => holds);
}

async function gather(
  { client, modelRecord }: { client: Client; modelRecord: string | null },
  ledger: Evidence['ledger'],
  { sessionId, killed, next }: Extract<Ending, { kind: 'refunded' }>,
): Promise<Evidence> {
  const { state } = await readJournal(client, sessionId);
  if (state === null) throw new Error(`The history of ${sessionId} has no completed workflow task.`);
  return {
    ledger,
    state,
    ranBy: await readIdentities(client, sessionId),
    killedPid: killed.pid,
    nextPid: next.pid,
    modelRecord: modelRecord === null ? null : readRecordFile(modelRecord),
  };
}

function showLedger(story: Story, { ledger }: Evidence): void {
  story.title("The payments service's ledger");
  const rows = ledger.map(({ id, at, args, key }) => [
    id,
    timeOfDay(at),
    args.chargeId,
    String(args.cents),
    key === null ? 'none' : `${key.slice(0, 16)}…`,
  ]);
  story.table([['row', 'written', 'charge', 'cents', 'idempotency key'], ...rows]);
}

function showCalls(story: Story, { state }: Evidence): void {
  story.title('The tool-call log');
  const rows = state.calls.map((call) => [
    call.id,
    call.name,
    call.effect,
    call.status.kind,
    timeOfDay(call.issuedAt),
    timeOfDay(call.completedAt),
    call.decision === null ? '' : `${call.decision.decision} at ${timeOfDay(call.decision.at)}`,
  ]);
  story.table([['call', 'tool', 'effect', 'status', 'issued', 'completed', 'decision'], ...rows]);
  const dispatches = state.calls.flatMap((call) =>
    call.dispatches.map(({ no, at, outcome, reason }) => [
      call.id,
      String(no),
      timeOfDay(at),
      outcome ?? 'open',
      reason ?? '',
    ]),
  );
  story.title('Its dispatches');
  story.table([['call', 'no', 'at', 'outcome', 'after'], ...dispatches]);
}

function showCheckpoints(story: Story, checkpoints: readonly Checkpoint[]): void {
  story.title('The checkpoints, newest first: each completed workflow task is one');
  const rows = checkpoints.map(({ id, created_at, metadata }) => [
    id,
    timeOfDay(created_at),
    JSON.stringify(metadata['turn']),
    metadata['phase'] as Phase,
  ]);
  story.table([['id', 'time', 'turn', 'phase'], ...rows]);
}
