/** Holds a worker of the lab outside its tools: while it decodes payloads, and around its activities. */
import { asyncLocalStorage } from '@temporalio/activity';
import type { Payload, PayloadCodec } from '@temporalio/common';
import type { ActivityInterceptorsFactory, WorkerInterceptors } from '@temporalio/worker';
import { breakpoint } from 'perdure/testing';
import { activityKind } from '../src/contract/names.ts';
import type { SessionInput } from '../src/contract/session-input.ts';
import { codecWith } from './keys.ts';
import { BACKGROUND_REPORTED, BACKGROUND_REPORTING, CALLER_SEALING } from './steps.ts';

/** Holds a worker at a breakpoint while it decodes a payload. */
function holding(pointOf: (payload: Payload) => string | null): PayloadCodec {
  return {
    encode: async (payloads) => payloads,
    decode: async (payloads) => {
      const point = payloads.map(pointOf).find((name) => name !== null) ?? null;
      if (point !== null) await breakpoint(point);
      return payloads;
    },
  };
}

/**
 * Recognises the first task of a new run by the carried state, and a model call that fetches messages on another
 * worker.
 */
function runsPoint({ metadata, data }: Payload): string | null {
  const running = asyncLocalStorage.getStore();
  const activity = running === undefined ? null : activityKind(running.info.activityType);
  const isPiece = Buffer.from(metadata?.['encoding'] ?? '').toString() === 'binary/plain';
  if (activity === 'model' && isPiece) return 'fetching';
  return activity === null && Buffer.from(data ?? '').includes('"carried":{') ? 'rolling-over' : null;
}

/** Recognises the workflow task that has the decision of a person. */
function decisionPoint({ data }: Payload): string | null {
  const isActivity = asyncLocalStorage.getStore() !== undefined;
  return !isActivity && Buffer.from(data ?? '').includes('"decision":{') ? 'child-decided' : null;
}

/** Recognises the first task of a new run that has a report of a sub-agent in its queue. */
function reportPoint(payload: Payload): string | null {
  if (runsPoint(payload) !== 'rolling-over') return null;
  const { carried } = JSON.parse(Buffer.from(payload.data ?? '').toString()) as SessionInput;
  return carried?.inbox.some(({ report }) => report !== undefined) === true ? 'report-carried' : null;
}

/** A planted mistake: changes the answer that a sub-agent's session reports to its caller. */
const lyingReports: PayloadCodec = {
  encode: async (payloads) =>
    payloads.map((payload) => {
      const text = Buffer.from(payload.data ?? '').toString();
      if (!text.startsWith('{"child":')) return payload;
      return { ...payload, data: Buffer.from(text.replace('"output":"Done', '"output":"Nothing')) };
    }),
  decode: async (payloads) => payloads,
};

/**
 * Holds the caller of a background sub-agent before it stores the part of its state that leaves the run, and the
 * sub-agent before and after its report.
 */
const backgroundPoints: ActivityInterceptorsFactory = ({ info: { activityType, workflowExecution } }) => ({
  inbound: {
    execute: async (input, next) => {
      const depth = (workflowExecution?.workflowId.split('/').length ?? 0) - 1;
      const below = depth - Number(process.env['LAB_CALLER_DEPTH']);
      const activity = activityKind(activityType);
      if (below === 0 && activity === 'storePast') await breakpoint(CALLER_SEALING);
      const reports = below === 1 && activity === 'report';
      if (reports) await breakpoint(BACKGROUND_REPORTING);
      const result = await next(input);
      if (reports) await breakpoint(BACKGROUND_REPORTED);
      return result;
    },
  },
});

/** Recognises an answer of a rate limiter that allows a request. */
function grantPoint({ data }: Payload): string | null {
  return Buffer.from(data ?? '').includes('"granted":[{') ? 'granted' : null;
}

/** The codecs of a worker. */
export const codecs: PayloadCodec[] = [
  ...(process.env['LAB_KEYS'] === undefined ? [] : [codecWith(...process.env['LAB_KEYS'].split(','))]),
  ...(process.env['LAB_RATE'] === undefined ? [] : [holding(grantPoint)]),
  ...(process.env['LAB_LYING_REPORT'] === '1' ? [lyingReports] : []),
  ...(process.env['LAB_HOLD_TASKS'] === '1' ? [holding(() => 'task')] : []),
  ...(process.env['LAB_HOLD_RUNS'] === '1'
    ? [holding(runsPoint), holding(decisionPoint), holding(reportPoint)]
    : []),
];

/** The interceptors of a worker. */
export const interceptors: WorkerInterceptors =
  process.env['LAB_CALLER_DEPTH'] === undefined ? {} : { activity: [backgroundPoints] };
