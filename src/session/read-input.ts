/** Reads signals and updates from clients in any language into inputs of the core. */

import { editSchema } from '../contract/edit.ts';
import type { ErrorCode } from '../contract/errors.ts';
import {
  budgetSchema,
  cancelSchema,
  decideSchema,
  editMessageSchema,
  effectDoneSchema,
  type InputProblem,
  parseInput,
  pauseSchema,
  poolChangedSchema,
  rateTurnSchema,
  resolveSchema,
  resumeSchema,
  searchAttributesSchema,
  sendSchema,
  UNREADABLE,
  waiterSchema,
  withdrawSchema,
} from '../contract/inputs.ts';
import { isDeeperThan, jsonSize, MAX_DEPTH } from '../contract/json.ts';
import { LIMIT, tooLarge } from '../contract/limits.ts';
import { SIGNAL, UPDATE } from '../contract/names.ts';
import { childDoneSchema } from '../contract/tree.ts';
import type { PersonInput } from './events.ts';

type Read =
  | { ok: true; input: Exclude<PersonInput, { type: 'malformed' }> }
  | { ok: false; code?: ErrorCode; message: string; details?: Readonly<Record<string, unknown>> };

/**
 * Reads the payload of an update or a signal, or says which field is wrong.
 *
 * @param limit - in bytes of JSON. An input on record may be larger than what is accepted now
 */
export function readInput(name: string, payload: unknown, limit: number = LIMIT.input): Read {
  if (payload === UNREADABLE) return { ok: false, message: 'its payload cannot be decoded' };
  if (isDeeperThan(payload, MAX_DEPTH)) {
    return { ok: false, message: `it is nested deeper than ${MAX_DEPTH} levels` };
  }
  const size = jsonSize(payload);
  if (size > limit) {
    const { code, message, details } = tooLarge(name, size, limit);
    return { ok: false, code, message, details };
  }
  const read = readAs(name, payload ?? {});
  return read.ok || !('field' in read)
    ? read
    : { ok: false, message: read.message, details: { field: read.field } };
}

function readAs(name: string, value: unknown): Read | ({ ok: false } & InputProblem) {
  switch (name) {
    case SIGNAL.send:
    case UPDATE.send: {
      // A plain client may send a bare string.
      const parsed = parseInput(sendSchema, typeof value === 'string' ? { text: value } : value);
      return parsed.ok ? { ok: true, input: { type: 'send', value: parsed.value } } : parsed;
    }
    case SIGNAL.pause: {
      const parsed = parseInput(pauseSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'pause', value: parsed.value } } : parsed;
    }
    case SIGNAL.resume: {
      const parsed = parseInput(resumeSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'resume', value: parsed.value } } : parsed;
    }
    case SIGNAL.cancel: {
      const parsed = parseInput(cancelSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'cancel', value: parsed.value } } : parsed;
    }
    case SIGNAL.awaitEffect: {
      const parsed = parseInput(waiterSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'await_effect', value: parsed.value } } : parsed;
    }
    case SIGNAL.effectDone: {
      const parsed = parseInput(effectDoneSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'effect_done', value: parsed.value } } : parsed;
    }
    case SIGNAL.searchAttributes: {
      const parsed = parseInput(searchAttributesSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'search_attributes', value: parsed.value } } : parsed;
    }
    case SIGNAL.poolChanged: {
      const parsed = parseInput(poolChangedSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'pool_changed', value: parsed.value } } : parsed;
    }
    case SIGNAL.childDone: {
      const parsed = parseInput(childDoneSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'child_done', value: parsed.value } } : parsed;
    }
    case SIGNAL.rateTurn: {
      const parsed = parseInput(rateTurnSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'rate_turn', value: parsed.value } } : parsed;
    }
    case UPDATE.decide: {
      const parsed = parseInput(decideSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'decide', value: parsed.value } } : parsed;
    }
    case UPDATE.resolve: {
      const parsed = parseInput(resolveSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'resolve', value: parsed.value } } : parsed;
    }
    case UPDATE.budget: {
      const parsed = parseInput(budgetSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'budget', value: parsed.value } } : parsed;
    }
    case UPDATE.edit: {
      const parsed = parseInput(editSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'edit', value: parsed.value } } : parsed;
    }
    case UPDATE.seal: {
      const parsed = parseInput(pauseSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'seal', value: parsed.value } } : parsed;
    }
    case UPDATE.withdraw: {
      const parsed = parseInput(withdrawSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'withdraw', value: parsed.value } } : parsed;
    }
    case UPDATE.editMessage: {
      const parsed = parseInput(editMessageSchema, value);
      return parsed.ok ? { ok: true, input: { type: 'edit_message', value: parsed.value } } : parsed;
    }
    default:
      return { ok: false, message: `there is no signal or update named ${name}` };
  }
}

/** Reads a signal. An unreadable signal becomes an input that the session notes and that changes nothing else. */
export function readSignal(name: string, payload: unknown): PersonInput {
  const read = readInput(name, payload);
  return read.ok ? read.input : { type: 'malformed', name, message: read.message };
}
