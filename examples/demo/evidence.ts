/** Checks the demo's claims against the ledger, the session's history and the model's record. */
import type { SessionState, ToolCall } from 'perdure';
import type { RecordLine } from 'perdure/testing';
import type { Row } from '../payments/protocol.ts';

/** An activity that a process began: its kind, the tool call it is for, and the process, `<pid>@<host>`. */
export interface Ran {
  readonly kind: string;
  readonly callId: string | null;
  readonly identity: string;
}

/** What a run of the demo left behind. */
export interface Evidence {
  /** The payments service's refunds. */
  readonly ledger: readonly Extract<Row, { kind: 'refund' }>[];
  /** The session as its history folds. */
  readonly state: SessionState;
  readonly ranBy: readonly Ran[];
  readonly killedPid: number;
  readonly nextPid: number;
  /** What the scripted endpoint was asked; `null` with a real model, which keeps no record for us. */
  readonly modelRecord: readonly RecordLine[] | null;
}

/** One claim and whether it holds. */
export interface Claim {
  readonly text: string;
  readonly holds: boolean;
}

/** The claims of the demo. */
export function claims(evidence: Evidence): Claim[] {
  const { ledger, state, ranBy, killedPid, nextPid, modelRecord } = evidence;
  const refunds = state.calls.filter(({ name }) => name === 'refund');
  const completed = refunds.filter(
    ({ status, replayOf }) => status.kind === 'completed' && replayOf === null,
  );
  const call = completed[0];
  const dispatch = call?.dispatches[0];
  const ran = (kind: string, pid: number): boolean =>
    ranBy.some(
      (each) => each.kind === kind && each.callId === call?.id && each.identity.startsWith(`${pid}@`),
    );
  const result: Claim[] = [
    {
      text: `the ledger has one row for this refund (it has ${ledger.length})`,
      holds: ledger.length === 1 && call !== undefined && isRowOf(ledger[0], call),
    },
    {
      text: `one refund call completed, after a person's approval (${completed.length} did)`,
      holds: completed.length === 1 && decidedBefore(call),
    },
    {
      text: `it was dispatched once, and verify found its outcome (dispatches: ${call?.dispatches.length ?? 0}, outcome: ${dispatch?.outcome ?? 'none'})`,
      holds: call?.dispatches.length === 1 && dispatch?.outcome === 'landed',
    },
    {
      text: `the killed worker (pid ${killedPid}) sent the refund, the next one (pid ${nextPid}) looked for it`,
      holds: ran('tool', killedPid) && ran('verify', nextPid),
    },
    {
      text: `the session went on to its end (it is ${state.status.kind})`,
      holds: state.status.kind === 'completed',
    },
  ];
  if (modelRecord !== null) {
    const paid = modelRecord.filter(({ outcome }) => outcome === 'reply');
    const asked = new Set(paid.map(({ digest }) => digest));
    result.push({
      text: `each of the model's ${state.budget.spent.turns} replies was paid for once (the endpoint gave ${paid.length})`,
      holds: paid.length === state.budget.spent.turns && asked.size === paid.length && paid.length > 0,
    });
  }
  return result;
}

function decidedBefore(call: ToolCall | undefined): boolean {
  const decision = call?.decision ?? null;
  return decision !== null && decision.at <= (call?.issuedAt ?? '');
}

function isRowOf(row: Evidence['ledger'][number] | undefined, call: ToolCall): boolean {
  const told = call.result?.content as { id?: unknown } | null | undefined;
  const args = call.args as { chargeId?: unknown; cents?: unknown };
  return (
    row?.key === call.idempotencyKey &&
    row.id === told?.id &&
    row.args.chargeId === args.chargeId &&
    row.args.cents === args.cents
  );
}
