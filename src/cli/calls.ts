/** Tool calls as text: the log, the news of a call, and what runs now. */

import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { type Dispatch, isFinal, type ToolCall } from '../contract/calls.ts';
import { activityKind } from '../contract/names.ts';
import type { SessionState } from '../contract/state.ts';
import { activityContext, failureMessage } from '../temporal/payloads.ts';
import { tsToMs } from '../temporal/sdk-time.ts';
import { clean, inline, type Terminal } from './terminal.ts';

/** The most characters of a value. */
const BRIEF = 300;
/** `PENDING_ACTIVITY_STATE_SCHEDULED`: no worker has taken it. */
const SCHEDULED = 1;

/** The tool-call log: the times of each call, and its dispatches when one was lost. */
export function callLines(calls: readonly ToolCall[], terminal: Terminal): string {
  return calls
    .map((call) => {
      const { status, decision, resolutions, dispatches } = call;
      const state = status.kind === 'failed' && status.certain ? 'failed (nothing happened)' : status.kind;
      const notes = [
        `issued ${call.issuedAt ?? '-'}`,
        `ended ${call.completedAt ?? '-'}`,
        ...(call.replayOf === null
          ? []
          : [`not executed: answered from the record of ${clean(call.replayOf)}`]),
        ...(call.compensates === undefined ? [] : [`undoes ${clean(call.compensates.callId)}`]),
        ...(call.compensatedBy === undefined ? [] : [`undone by ${clean(call.compensatedBy)}`]),
        ...(decision === null ? [] : [`${decision.decision} by ${clean(decision.by)} at ${decision.at}`]),
      ];
      const uneventful = dispatches.length < 2 && dispatches.every(({ outcome }) => outcome === 'returned');
      const story = [
        ...(uneventful
          ? []
          : dispatches.map((dispatch) => `${dispatchText(dispatch)}, sent at ${dispatch.at}`)),
        ...resolutions.map(
          ({ dispatchNo, outcome, by, at }) =>
            `dispatch ${dispatchNo}: ${outcome}, says ${clean(by)} at ${at}`,
        ),
        ...('reason' in status ? [`${status.kind}: ${clean(status.reason)}`] : []),
      ];
      return [
        `  ${clean(call.id)}  ${terminal.style('bold', clean(call.name))} ${inline(call.args, BRIEF)}  ${state}`,
        terminal.style('dim', `    ${notes.join(' · ')}`),
        ...story.map((line) => terminal.style('dim', `    ${line}`)),
      ].join('\n');
    })
    .join('\n');
}

function dispatchText({ no, outcome, reason }: Dispatch): string {
  const why = reason === undefined ? '' : ` (${clean(reason)})`;
  return `dispatch ${no}: ${outcome ?? 'in flight'}${why}`;
}

/** What has changed in a call since it was last shown, one line each. */
export function callNews(call: ToolCall, before: ToolCall | undefined): string[] {
  const { id, name, args, status, dispatches, decision, resolutions, result, replayOf } = call;
  const lines: string[] = [];
  const say = (text: string): number => lines.push(`  ${clean(id)}: ${text}`);
  if (before === undefined) lines.push(`-> ${clean(name)} ${inline(args, BRIEF)}  [${clean(id)}]`);
  if (decision !== null && before?.decision?.at !== decision.at)
    say(`${decision.decision} by ${clean(decision.by)}`);
  for (const [index, dispatch] of dispatches.entries()) {
    const old = before?.dispatches[index];
    const isNew = old === undefined && dispatch.no > 1;
    const isLost = dispatch.outcome !== null && dispatch.outcome !== 'returned';
    if (isNew || (isLost && old?.outcome !== dispatch.outcome)) say(dispatchText(dispatch));
  }
  for (const { dispatchNo, outcome, by } of resolutions.slice(before?.resolutions.length ?? 0))
    say(`dispatch ${dispatchNo}: ${outcome}, says ${clean(by)}`);
  if (before?.status.kind !== status.kind && 'reason' in status)
    say(`${status.kind}: ${clean(status.reason)}`);
  if (isFinal(call) && (before === undefined || !isFinal(before))) {
    const how = replayOf === null ? '' : ` (not executed: answered from the record of ${clean(replayOf)})`;
    const said = result === null ? status.kind : inline(result.content, BRIEF);
    lines.push(`<- ${clean(name)}${result?.isError ? ' failed' : ''} ${said}${how}  [${clean(id)}]`);
  }
  return lines;
}

/** What runs or waits for a worker now. Temporal knows about a lost attempt before the session does. */
export function inFlightLines(
  client: Client,
  { raw, workflowId }: WorkflowExecutionDescription,
  state: SessionState,
  now: number,
): Promise<string[]> {
  const lines = (raw.pendingActivities ?? []).map(async (activity) => {
    const flight = state.inFlight.find(({ seq }) => String(seq) === activity.activityId);
    const what =
      flight?.callId === undefined
        ? (activityKind(activity.activityType?.name) ?? activity.activityType?.name ?? '')
        : `${flight.kind} ${flight.callId}`;
    const attempt = activity.attempt ?? 1;
    const worker = activity.lastWorkerIdentity ?? '';
    const context = activityContext(client.options.namespace, workflowId, activity.activityId ?? '');
    const lost = await failureMessage(client.options, activity.lastFailure, context);
    const doing =
      Number(activity.state) === SCHEDULED
        ? 'waits for a worker'
        : `on worker ${worker}, last heard from ${age(now, activity.lastHeartbeatTime ?? activity.lastStartedTime)} ago`;
    const before = attempt > 1 && lost !== '' ? `; the previous attempt failed: ${lost}` : '';
    return `  ${clean(what)}  attempt ${attempt}, ${clean(doing + before)}`;
  });
  return Promise.all(lines);
}

function age(now: number, time: Parameters<typeof tsToMs>[0]): string {
  return `${Math.max(0, Math.round((now - tsToMs(time)) / 1_000))} s`;
}
