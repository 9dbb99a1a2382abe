/** The type of the context that a session is started with. The compiler runs most of this test. */
import { jsonSchema } from 'ai';
import { expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { type DefinedAgent, defineAgent, type Session, type Sessions } from '../../src/index.ts';

const Customer = z.object({ tenant: z.string(), userId: z.string(), locale: z.string().default('en') });
const options = { name: 'desk', model: 'scripted', instructions: 'Help.' } as const;

test('an agent with a context schema tells what its sessions take as context', () => {
  const typed = defineAgent({ ...options, context: Customer, instructions: ({ context }) => context.locale });
  expectTypeOf(typed).toEqualTypeOf<DefinedAgent<z.input<typeof Customer>>>();
  expectTypeOf(typed).toExtend<DefinedAgent>();
  const untyped = defineAgent({ ...options, context: jsonSchema({ type: 'object' }) });
  const none = defineAgent(options);
  const start = (sessions: Sessions): Promise<Session>[] => [
    sessions.start(typed, { context: { tenant: 'acme', userId: 'u-7' } }),
    sessions.start(typed, { message: 'a context can be left out, and the server says what is missing' }),
    // @ts-expect-error -- a field has another type
    sessions.start(typed, { context: { tenant: 'acme', userId: 7 } }),
    // @ts-expect-error -- a field is missing
    sessions.start(typed, { context: { tenant: 'acme' } }),
    // @ts-expect-error -- a field is unknown
    sessions.start(typed, { context: { tenant: 'acme', userId: 'u-7', user: 'u-7' } }),
    sessions.start('desk', { context: { anything: 'goes' } }),
    sessions.start(untyped, { context: { anything: 'goes' } }),
    sessions.start(none, { context: { anything: 'goes' } }),
  ];
  expectTypeOf(start).returns.toEqualTypeOf<Promise<Session>[]>();
});
