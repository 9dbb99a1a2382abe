/** The context window of an agent's models, and the agent's own rule for compacting a prompt. */
import { defined } from '../contract/json.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { Message } from '../contract/messages.ts';
import { isCut } from '../contract/view.ts';
import { countProblem, kindProblem, nameProblem } from './checks.ts';
import { deadline, describe, withDeadline } from './validate.ts';

/** How a session stays within the model's context window. */
export interface ContextWindowOptions {
  /**
   * How many tokens a prompt and its reply may have together. Default: the smallest window of the agent's models that
   * are known. If none is known, a prompt is compacted when the model refuses it.
   */
  tokens?: number;
  /** The share of the window at which the prompt is compacted, above 0 and at most 1. Default: 0.8. */
  compactAt?: number;
  /**
   * How many tokens of the last messages stay as they are, at most a quarter of the prompt. Default: that quarter, or
   * 8,000 if no model's window is known.
   */
  keep?: number;
  /**
   * Your own rule: a pure function of the messages that the model sees. It returns the index from which messages stay,
   * or the text of the summary, or both; the session does the rest as usual. The worker calls it, a replay does not. If
   * it throws, returns something else or takes over ten seconds, the session waits and says why.
   */
  compact?: (
    view: readonly Message[],
    info: CompactionInfo,
  ) => CompactionChoice | PromiseLike<CompactionChoice>;
}

/** The second argument of `compact`. */
export interface CompactionInfo {
  /** How many bytes of JSON the messages that stay may have. A token has about three. */
  keep: number;
}

/** What `compact` returns. `keepFrom` must not separate a call from its result. */
export interface CompactionChoice {
  keepFrom?: number;
  summary?: string;
}

const NAMES: readonly (keyof ContextWindowOptions)[] = ['tokens', 'compactAt', 'keep', 'compact'];
const DEFAULTS = { compactAt: 0.8, keepShare: 0.25, keep: 8_000 } as const;

/** Context windows in tokens, by the beginning of the model's id. Another provider may serve the model with less. */
const WINDOWS: readonly [RegExp, number][] = [
  [/^gpt-5/, 272_000],
  [/^gpt-4\.1/, 1_047_576],
  [/^(gpt-4o|gpt-4-turbo|chatgpt-4o)/, 128_000],
  [/^(o1|o3|o4-mini)(-|$)/, 200_000],
  [/^claude-/, 200_000],
  [/^gemini-(2|3|flash|pro)/, 1_048_576],
  [/^grok-4/, 256_000],
];

/** The part of a manifest that keeps prompts within the window of each model. */
export function contextWindowPart(
  given: ContextWindowOptions | false | undefined,
  models: readonly { modelId: string; maxOutputTokens: number }[],
): Pick<Manifest, 'contextWindow'> {
  if (given === false) return {};
  const { tokens, compactAt: share = DEFAULTS.compactAt } = given ?? {};
  const limits = models.flatMap(({ modelId, maxOutputTokens }) => {
    const name = modelId.slice(modelId.lastIndexOf('/') + 1);
    const window = tokens ?? WINDOWS.find(([beginning]) => beginning.test(name))?.[1];
    // At least half of the window is for the prompt, even if a reply may be longer.
    return window === undefined ? [] : [Math.floor(share * Math.max(window - maxOutputTokens, window / 2))];
  });
  const compactAt = limits.length === 0 ? undefined : Math.max(1, Math.min(...limits));
  const usual = compactAt === undefined ? DEFAULTS.keep : Math.floor(compactAt * DEFAULTS.keepShare);
  const keep = given?.keep ?? usual;
  return { contextWindow: { ...(compactAt === undefined ? {} : { compactAt }), keep } };
}

/** The problem of the option, with what to write instead, or `null`. */
export function contextWindowProblem(options: ContextWindowOptions | false | undefined): string | null {
  if (options === undefined || options === false) return null;
  const kind = kindProblem('contextWindow', options, 'an object');
  if (kind !== null) return `${kind}, or false`;
  const { tokens, compactAt, keep, compact } = options;
  const problem =
    nameProblem('contextWindow.', options, NAMES) ??
    countProblem('contextWindow.tokens', tokens) ??
    countProblem('contextWindow.keep', keep);
  if (problem !== null) return problem;
  if (compactAt !== undefined && !(compactAt > 0 && compactAt <= 1))
    return `contextWindow.compactAt is ${compactAt}: write a share of the window, above 0 and at most 1`;
  if (
    tokens !== undefined &&
    keep !== undefined &&
    keep > tokens * (compactAt ?? DEFAULTS.compactAt) * DEFAULTS.keepShare
  )
    return `contextWindow.keep is ${keep}: write at most a quarter of the tokens at which the prompt is compacted`;
  return compact === undefined || typeof compact === 'function'
    ? null
    : 'contextWindow.compact is not a function: write (view, { keep }) => ({ keepFrom })';
}

/** Asks an agent's own rule how to compact a view, and checks the choice. Without a rule, the choice is empty. */
export async function chooseCompaction(
  { name, contextWindow }: { name: string; contextWindow?: ContextWindowOptions | false },
  view: readonly Message[],
  keep: number,
): Promise<{ ok: true; from?: number; text?: string } | { ok: false; problem: string }> {
  const rule = contextWindow === false ? undefined : contextWindow?.compact;
  if (rule === undefined) return { ok: true };
  const wrong = (problem: string): { ok: false; problem: string } => ({
    ok: false,
    problem: `contextWindow.compact of ${name} ${problem}`,
  });
  try {
    const choice: unknown = await withDeadline(rule(structuredClone(view), { keep }), deadline());
    if (typeof choice !== 'object' || choice === null) return wrong('must return { keepFrom, summary }');
    const { keepFrom: from, summary: text } = choice as { keepFrom?: unknown; summary?: unknown };
    if (from !== undefined && !(typeof from === 'number' && isCut(view, from)))
      return wrong(`returned keepFrom ${JSON.stringify(from)}: ${cuts(view)}`);
    if (text !== undefined && (typeof text !== 'string' || text.trim() === ''))
      return wrong('returned a summary that is no text');
    return { ok: true, ...defined({ from, text }) };
  } catch (error) {
    return wrong(`failed: ${describe(error)}`);
  }
}

/** Where a view may be cut, in words. */
function cuts(view: readonly Message[]): string {
  const found = [...view.keys()].filter((i) => isCut(view, i));
  if (found.length === 0) return 'these messages cannot be cut: return nothing';
  const near = found.length > 12 ? [...found.slice(0, 6), '…', ...found.slice(-6)] : found;
  return `write one of ${near.join(', ')}, so that calls stay with their results`;
}
