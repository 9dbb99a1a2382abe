/** Protocols with one thing wrong: what the checker must notice. */
import { CONVERSATION } from './conversation.ts';
import { DISPATCHES } from './dispatches.ts';
import type { Fault } from './fault.ts';
import { PEOPLE } from './people.ts';
import { TIME } from './time.ts';
import { UNDO } from './undo.ts';

export const FAULTS: readonly Fault[] = [...DISPATCHES, ...CONVERSATION, ...PEOPLE, ...TIME, ...UNDO];
