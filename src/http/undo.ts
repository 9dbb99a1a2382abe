/** Undoing effects over HTTP. */
import * as z from 'zod/mini';
import { type CancelInput, cancelSchema } from '../contract/inputs.ts';
import type { UndoPlan } from '../contract/undo.ts';
import { exactly, jsonValue } from './shapes.ts';

export const undoPlanSchema: z.ZodMiniType<UndoPlan> = exactly<UndoPlan>()(
  z.object({
    digest: z.string(),
    steps: z.array(
      z.object({
        callId: z.string(),
        tool: z.string(),
        args: jsonValue,
        output: jsonValue,
        by: z.enum(['tool', 'person']),
        reason: z.exactOptional(z.string()),
        child: z.exactOptional(z.string()),
        session: z.exactOptional(z.string()),
      }),
    ),
  }),
);

export type CancelBody = Omit<CancelInput, 'verified'>;
/** The token says whether the caller's name is verified. */
export const cancelBodySchema: z.ZodMiniType<CancelBody> = z.omit(
  cancelSchema() as unknown as z.ZodMiniObject,
  { verified: true, whole: true },
);
