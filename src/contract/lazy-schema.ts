import type * as z from 'zod/mini';

export type LazySchema<T> = () => z.ZodMiniType<T>;

/**
 * A schema made on first use. Temporal freezes what modules export, and a frozen zod schema cannot initialize itself.
 */
export function lazySchema<T>(make: () => z.ZodMiniType<T>): LazySchema<T> {
  let made: z.ZodMiniType<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
