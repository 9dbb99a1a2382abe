/** Questions of an MCP server in the middle of a call, which people answer. */
import type { ElicitRequest, ElicitResult, InputRequiredResult } from '@modelcontextprotocol/client';
import { NotAttemptedError, QuestionError } from '../agent/index.ts';
import type { ToolAnswer } from '../contract/calls.ts';
import { defined, type JsonObject, type JsonValue } from '../contract/json.ts';

type Asked = ElicitRequest['params'];

/** What goes back to the server with the answer to a question. */
interface Place {
  requestState?: string;
  /** The server's questions, by its keys. */
  asked: Record<string, Pick<Asked, 'mode'> & { schema?: JsonObject }>;
}

/** The error when a server asks for something that no person can answer. The server has not acted yet. */
export class UnsupportedRequest extends NotAttemptedError {
  constructor(message: string) {
    super(message, { retryable: false });
  }
}

/**
 * Joins the questions of an `input_required` result into one question.
 *
 * @throws UnsupportedRequest when the server asks for something else
 */
export function questionOf(
  server: string,
  { inputRequests, requestState }: InputRequiredResult,
): QuestionError {
  const asked: Place['asked'] = {};
  const texts: string[] = [];
  for (const [key, request] of Object.entries(inputRequests ?? {})) {
    if (request.method !== 'elicitation/create')
      throw new UnsupportedRequest(`The server asks for ${request.method}, which is not supported.`);
    asked[key] = placeOf(request.params);
    texts.push(textOf(request.params));
  }
  const state: Place = { asked, ...defined({ requestState }) };
  return ask(`${server} asks: ${texts.join('\n')}`, state);
}

/** The question of a server of an older protocol, which asks while the call runs. */
export function oldQuestionOf(server: string, params: Asked): QuestionError {
  return ask(`${server} asks: ${textOf(params)}`, { asked: { [textOf(params)]: placeOf(params) } });
}

/** The recorded answer to a question of a server of an older protocol, if there is one. */
export function oldAnswerTo(params: Asked, answers: readonly ToolAnswer[]): ElicitResult | undefined {
  const key = textOf(params);
  const answer = answers.findLast(({ state }) => Object.hasOwn(asPlace(state).asked, key));
  return answer === undefined ? undefined : answersTo(answer)[key];
}

/** What a call sends beside its arguments once its questions are answered. */
export function continuationOf(answers: readonly ToolAnswer[]): {
  inputResponses?: Record<string, ElicitResult>;
  requestState?: string;
} {
  const last = answers.at(-1);
  if (last === undefined) return {};
  const { requestState } = asPlace(last.state);
  return { inputResponses: answersTo(last), ...defined({ requestState }) };
}

/** @throws QuestionError with the same question again, when the answer lacks a field */
function answersTo(answer: ToolAnswer): Record<string, ElicitResult> {
  const { asked } = asPlace(answer.state);
  const keys = Object.keys(asked);
  return Object.fromEntries(
    Object.entries(asked).map(([key, { mode, schema = {} }]): [string, ElicitResult] => {
      if (mode === 'url') return [key, { action: 'accept' }];
      const whole = keys.length > 1 && isJsonObject(answer.output) ? answer.output[key] : answer.output;
      const content = contentOf(schema, whole ?? null);
      const missing = (schema['required'] as string[] | undefined)?.filter(
        (name) => !Object.hasOwn(content, name),
      );
      if (missing !== undefined && missing.length > 0) {
        const [question = ''] = answer.text.split(AGAIN);
        throw ask(`${question}${AGAIN}the answer lacks ${missing.join(', ')}`, asPlace(answer.state));
      }
      return [key, { action: 'accept', content }];
    }),
  );
}

const AGAIN = '\nAsked again: ';

/** A person may answer a form of one field with its value. */
function contentOf(schema: JsonObject, output: JsonValue): NonNullable<ElicitResult['content']> {
  if (isJsonObject(output)) return output as NonNullable<ElicitResult['content']>;
  const [only, ...others] = Object.keys((schema['properties'] as JsonObject | undefined) ?? {});
  if (only === undefined || others.length > 0) return {};
  return { [only]: output as string | number | boolean };
}

function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function ask(text: string, state: Place): QuestionError {
  const forms = Object.entries(state.asked).flatMap(([key, { schema }]) =>
    schema ? [[key, schema] as const] : [],
  );
  const [first] = forms;
  const answer = forms.length > 1 ? { type: 'object', properties: Object.fromEntries(forms) } : first?.[1];
  return new QuestionError(text, { state: state as unknown as JsonObject, ...defined({ answer }) });
}

function placeOf(params: Asked): Place['asked'][string] {
  return params.mode === 'url'
    ? { mode: 'url' }
    : { mode: 'form', schema: params.requestedSchema as unknown as JsonObject };
}

function textOf(params: Asked): string {
  return params.mode === 'url'
    ? `${params.message}\nOpen ${params.url}, and answer when it is done.`
    : params.message;
}

function asPlace(state: JsonValue | undefined): Place {
  return (state ?? { asked: {} }) as unknown as Place;
}
