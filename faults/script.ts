/** What the model of the lab says. */
import type { Script } from 'perdure/testing';
import { LARGE_REPLY, TOO_LARGE_REPLY } from './large.ts';
import { ALSO_READ, callTags, MORE, type Task, TOOL, taskOf, USAGE } from './story.ts';

/** The model: calls for as many turns as the task says and one more for each message that asks for it, then an answer. */
export function scriptOf(heard: Map<string, string>): Script {
  return (request) => {
    const task = taskOf(request);
    heard.set(request.digest, task.session);
    const { toolResults, messages, repeat } = request;
    const more = messages.filter(({ role, text }) => role === 'user' && text.startsWith(MORE)).length;
    const turn = toolResults.length / callTags(task, 1).length + 1;
    const toolCalls = callTags(task, turn).map((tag, i) => ({
      name: i === 0 ? TOOL[task.kind] : ALSO_READ,
      args: { tag, mode: task.mode },
    }));
    const reply =
      turn <= task.turns + more
        ? { ...(task.mode === 'large' ? { text: LARGE_REPLY } : {}), toolCalls, usage: USAGE }
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

function answer({ mode }: Task, calls: number, repeat: number): string {
  return mode === 'large' && repeat === 0 ? TOO_LARGE_REPLY : `Done after ${calls}.`;
}
