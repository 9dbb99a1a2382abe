import type * as z from 'zod/mini';

/** Gives a schema, each time the same. */
export type LazySchema<T> = () => z.ZodMiniType<T>;

/**
 * A schema that is made when it is first asked for. One copy of a module serves all sessions of a worker, and
 * Temporal freezes what such a module exports, as far as it can reach: zod's schemas work out parts of themselves
 * as they are used, which a frozen one cannot.
 */
export function lazySchema<T>(make: () => z.ZodMiniType<T>): LazySchema<T> {
  let made: z.ZodMiniType<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
