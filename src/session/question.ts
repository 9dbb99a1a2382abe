/** Calls that are questions to a person, and questions that tools ask in the middle of a call. */
import type { Decision, DecisionRecord, Dispatch, ToolCall, ToolQuestion } from '../contract/calls.ts';
import { canonicalJson, defined, type JsonValue, jsonSize } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import { LIMIT } from '../contract/limits.ts';
import type { ToolManifest } from '../contract/manifest.ts';
import type { SessionState } from '../contract/state.ts';
import type { PendingCall } from '../contract/views.ts';
import { expiryFrom } from './approvers.ts';
import type { Refusal } from './refusal.ts';
import { endCall, toolOf } from './state.ts';

/** How many questions one call may ask. */
const MOST_QUESTIONS = 10;

/** A question as a person sees it; empty for any other call. */
export function questionOf(
  tool: ToolManifest | undefined,
  { args, status }: Pick<ToolCall, 'args' | 'status'>,
): Pick<PendingCall, 'question'> {
  if (status.kind !== 'approval') return {};
  if (status.question !== undefined) {
    const { text, answer } = status.question;
    return { question: { text, ...defined({ answer }) } };
  }
  if (tool?.question === undefined) return {};
  const { question, options } = (args ?? {}) as { question?: unknown; options?: unknown };
  const texts = Array.isArray(options) ? options.filter((each) => typeof each === 'string') : [];
  return {
    question: {
      text: typeof question === 'string' ? question : canonicalJson(args),
      ...defined({ options: texts.length === 0 ? undefined : texts }),
      ...tool.question,
    },
  };
}

/**
 * What a decision is bound to: the arguments, and the tool's question if there is one. Otherwise a late answer to a
 * question would answer the next one.
 */
export function seenDigest({ name, args, argsDigest: digest, status, answers = [] }: ToolCall): string {
  if (status.kind !== 'approval' || status.question === undefined) return digest;
  const { text, answer } = status.question;
  return argsDigest(name, { args, question: { text, ...defined({ answer }) }, number: answers.length });
}

/** Lets a call wait for a person's answer: its tool has done nothing yet, and asks. */
export function askQuestion(
  state: SessionState,
  call: ToolCall,
  dispatch: Dispatch,
  question: ToolQuestion,
  at: string,
): void {
  dispatch.outcome = 'absent';
  dispatch.asked = true;
  dispatch.reason = `asked: ${question.text}`;
  const why = refused(state, call);
  if (why === null) {
    call.status = { kind: 'approval', ...expiryFrom(toolOf(state, call), at), question };
    return;
  }
  const content = `${call.name} was not executed: it asks a question, ${why}: ${question.text}`;
  endCall(call, { kind: 'failed', certain: true }, { content, isError: true }, at);
}

function refused({ effect }: SessionState, { answers = [], compensates }: ToolCall): string | null {
  if (compensates !== undefined) return 'which the compensation of an effect cannot do';
  // The effect belongs to many sessions, so no single person can answer for it.
  if (effect !== null) return 'which a call of scope global cannot do';
  return answers.length < MOST_QUESTIONS ? null : `and has asked ${MOST_QUESTIONS} in this call`;
}

/** Why a decision does not answer a tool's question, or `null`. */
export function answerProblem({ id, status }: ToolCall, answer: Decision): Refusal | null {
  if (status.kind !== 'approval' || status.question === undefined) return null;
  const { decision } = answer;
  if (decision === 'respond' && jsonSize(answer.output) > LIMIT.question) {
    const message = `output: an answer to a tool has at most ${LIMIT.question} bytes of JSON`;
    return { code: 'TOO_LARGE', message, details: { field: 'output', limit: LIMIT.question } };
  }
  if (decision === 'respond' || decision === 'reject') return null;
  const message = `decision: call ${id} asks a question. Answer it with respond, or reject it`;
  return { code: 'INVALID_ARGUMENT', message, details: { field: 'decision', callId: id } };
}

/** Takes the answer to a tool's question: the call goes on with it. @returns whether there was a question */
export function takeAnswer(
  call: ToolCall,
  output: JsonValue,
  who: Omit<DecisionRecord, 'decision' | 'reason'>,
): boolean {
  if (call.status.kind !== 'approval' || call.status.question === undefined) return false;
  call.answers = [...(call.answers ?? []), { ...call.status.question, output, ...who }];
  call.status = { kind: 'ready' };
  return true;
}
