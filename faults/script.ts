/** The script of the lab's model. */
import type { Script, ScriptedRequest } from 'perdure/testing';
import { SUMMARY_REQUEST } from '../src/contract/view.ts';
import { LARGE_REPLY, TOO_LARGE_REPLY } from './large.ts';
import {
  ALSO_READ,
  callTags,
  delegateOf,
  MORE,
  type Task,
  TOOL,
  taskBelow,
  taskOf,
  taskText,
  USAGE,
} from './story.ts';

/** The session of a request, and how many replies it had before. -1: a request for a summary. */
export interface Heard {
  readonly session: string;
  readonly position: number;
}

/** Bytes of a prompt that fit into the window of a task with a small window: about two turns. */
const WINDOW = 4_500;
const FILLER = 'Well, let me see what I can do about it. '.repeat(30);

/**
 * The model makes calls for as many turns as the task says, and one more for each message that asks for more. Then it
 * answers.
 */
export function scriptOf(heard: Map<string, Heard>): Script {
  return (request) => {
    const task = taskOf(request);
    const { toolResults, messages, repeat, lastUserText, assistantCount } = request;
    const before = summarized(request);
    const more =
      before.more + messages.filter(({ role, text }) => role === 'user' && text.startsWith(MORE)).length;
    const results = before.results + toolResults.length;
    const replies = before.replies + assistantCount;
    const summarizes = lastUserText === SUMMARY_REQUEST;
    heard.set(request.digest, { session: task.session, position: summarizes ? -1 : replies });
    if (summarizes) {
      const reply = {
        text: `<${JSON.stringify({ more, results, replies } satisfies Before)}>`,
        usage: USAGE,
      };
      return repeat === 1 ? { fault: 'cut', reply } : reply;
    }
    if (task.compacts === true && JSON.stringify(messages).length > WINDOW)
      return { fault: 'status', status: 400, message: 'prompt is too long' };
    const turn = results / callTags(task, 1).length + 1;
    const delegate = delegateOf(task);
    const toolCalls = callTags(task, turn).map((tag, i) =>
      delegate === undefined
        ? { name: i === 0 ? TOOL[task.kind] : ALSO_READ, args: { tag, mode: task.mode } }
        : { name: delegate, args: { tag, task: taskText(taskBelow(task, turn)) } },
    );
    const reply =
      turn <= task.turns + more
        ? { ...wordsOf(task), toolCalls, usage: USAGE }
        : { text: answer(task, turn - 1, repeat), usage: USAGE };
    return task.cutReply === turn && repeat === 0
      ? {
          fault: 'cut',
          reply: { ...reply, text: 'Well, let me see what I can do about it.' },
          afterChunks: 2,
        }
      : reply;
  };
}

/** What a summary of the script says about the messages before it. */
interface Before {
  more: number;
  results: number;
  replies: number;
}

function summarized({ messages }: ScriptedRequest): Before {
  const [, said = '{"more":0,"results":0,"replies":0}'] = /<(\{.*?\})>/.exec(messages[1]?.text ?? '') ?? [];
  return JSON.parse(said) as Before;
}

function wordsOf({ mode, compacts }: Task): { text?: string } {
  if (mode === 'large') return { text: LARGE_REPLY };
  return compacts === true ? { text: FILLER } : {};
}

function answer({ mode }: Task, calls: number, repeat: number): string {
  return mode === 'large' && repeat === 0 ? TOO_LARGE_REPLY : `Done after ${calls}.`;
}
