/** Arguments as people type them. */
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { type Command, InvalidArgumentError } from 'commander';
import { messageOf, PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';
import type { BudgetLimits } from '../contract/manifest.ts';
import { command, JSON_PLACEHOLDER, SHOWN_DIGITS } from '../session/commands.ts';
import { msToNumber } from '../temporal/sdk-time.ts';

/** A number from 0. */
export function amount(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value;
  throw new InvalidArgumentError('Write a number, 0 or more.');
}

/** A whole number from 0. */
export function count(text: string): number {
  const value = amount(text);
  if (Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError('Write a whole number, 0 or more.');
}

/** A TCP port; 0 for a free one. */
export function port(text: string): number {
  if (/^\d+$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('Write a port, 0 to 65535.');
}

/** A duration, in milliseconds. */
export function duration(text: string): number {
  try {
    return count(String(msToNumber(text as Parameters<typeof msToNumber>[0])));
  } catch {
    throw new InvalidArgumentError('Write a duration such as 90s, 10m or 2h.');
  }
}

export interface BudgetOptions {
  usd?: number;
  tokens?: number;
  turns?: number;
  toolCalls?: number;
  active?: number;
}

/** Adds the options of a budget to a verb. */
export function withBudget(command: Command): Command {
  return command
    .option('--usd <dollars>', 'cap on what the models cost', amount)
    .option('--tokens <count>', 'cap on input plus output tokens', count)
    .option('--turns <count>', 'cap on model calls', count)
    .option('--tool-calls <count>', 'cap on tool calls', count)
    .option('--active <time>', 'cap on the time that model and tool calls take, such as 10m', duration);
}

/** The given caps, or `undefined`. */
export function limitsOf(options: BudgetOptions): BudgetLimits | undefined {
  const { usd, tokens, turns, toolCalls, active: activeMs } = options;
  const limits = { usd, tokens, turns, toolCalls, activeMs };
  const given = Object.entries(limits).filter(([, value]) => value !== undefined);
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** Who decides about a call, and what they have seen of it. */
export interface SeenOptions {
  by?: string;
  digest?: string;
  dispatch?: number;
  yes?: true;
}

/** Adds the options that say who has seen what of a call. */
export function withSeen(command: Command): Command {
  return command
    .option(
      '--digest <digits>',
      'refuse if the arguments have changed; perdure show prints the digest',
      digits,
    )
    .option('--by <name>', 'who decides (default: $USER)');
}

/** The same for a decision, with an option to skip the confirmation. */
export function withDecision(command: Command): Command {
  return withSeen(command)
    .option('--yes', 'do not ask for confirmation')
    .addHelpText(
      'after',
      '\nWithout --digest, the call is shown and you confirm it. Scripts and --json\n' +
        'cannot confirm. There, name the call: the decision is on its current arguments.',
    );
}

/** The first digits of a digest, at least as many as commands show. */
function digits(text: string): string {
  if (text.length >= SHOWN_DIGITS && /^[0-9a-f]{1,64}$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError(`Write ${SHOWN_DIGITS} or more hexadecimal digits.`);
}

/** A text, or standard input for `-`. */
export async function textOf(argument: string): Promise<string> {
  return argument === '-' ? (await readAll(process.stdin)).replace(/\r?\n$/, '') : argument;
}

/** JSON, or a file of JSON after `@`. @throws PerdureError `INVALID_ARGUMENT` naming the option */
export async function jsonOf(option: string, argument: string): Promise<JsonValue> {
  const text = await fileOr(option, argument);
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `${option} is not JSON: ${messageOf(error)}. ` +
        `Write ${option} '{"key": "value"}', or ${option} @file.json`,
      { details: { option }, cause: error },
    );
  }
}

/** The context of `--context`. The client refuses anything but an object. */
export async function contextOf(argument: string | undefined): Promise<object | undefined> {
  return argument === undefined ? undefined : ((await jsonOf('--context', argument)) as object);
}

/** JSON if it is valid, otherwise the text itself. A file after `@`. */
export async function jsonOrTextOf(option: string, argument: string): Promise<JsonValue> {
  const text = await fileOr(option, argument);
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

async function fileOr(option: string, argument: string): Promise<string> {
  if (argument === JSON_PLACEHOLDER) {
    throw new PerdureError('INVALID_ARGUMENT', `${option}: replace ${argument} with the value`, {
      details: { option },
    });
  }
  if (!argument.startsWith('@')) return argument;
  const path = argument.slice(1);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `${option}: cannot read the file ${path}: ${messageOf(error)}`,
      { details: { option, path }, cause: error },
    );
  }
}

/** The typed command with further options. Options that it has already stay. */
export function typedWith(more: Readonly<Record<string, string>>): string {
  const typed = process.argv.slice(2);
  // Words after `--` are not options.
  const end = typed.includes('--') ? typed.indexOf('--') : typed.length;
  const has = (option: string): boolean =>
    typed.slice(0, end).some((word) => word === option || word.startsWith(`${option}=`));
  const added = Object.entries(more).filter(([option]) => !has(option));
  return command(...typed.slice(0, end), ...added.flat(), ...typed.slice(end));
}
