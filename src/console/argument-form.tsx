/** An object with a schema as a form, or as JSON where no form can be made: the arguments of a call, or an answer. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { argsOf, type Field, fieldsOf } from './form.ts';
import { visible } from './text.ts';

interface Props {
  schema: unknown;
  args: unknown;
  /** Called with the arguments, or with `undefined` while they are not valid JSON. */
  onChange: (args: unknown) => void;
}

export function ArgumentForm({ schema, args, onChange }: Props): JSX.Element {
  const fields = fieldsOf(schema, args);
  const [raw, setRaw] = useState(fields === null);
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(new Map());
  const [json, setJson] = useState(() => JSON.stringify(args, null, 2));
  const [problem, setProblem] = useState('');

  const typed = (name: string, text: string): void => {
    const next = new Map(texts).set(name, text);
    setTexts(next);
    onChange(argsOf(fields ?? [], next));
  };
  const typedJson = (text: string): void => {
    setJson(text);
    try {
      onChange(JSON.parse(text));
      setProblem('');
    } catch (error) {
      onChange(undefined);
      setProblem(error instanceof Error ? error.message : '');
    }
  };
  const toRaw = (): void => {
    setJson(JSON.stringify(argsOf(fields ?? [], texts), null, 2));
    setRaw(true);
  };

  if (raw || fields === null) {
    return (
      <label class="field">
        <span>
          As JSON
          {fields === null && (
            <small>
              {' '}
              {schema === undefined ? 'Its schema is not known.' : 'No form can be made of its schema.'}
            </small>
          )}
        </span>
        <textarea
          rows={Math.min(16, json.split('\n').length + 1)}
          value={json}
          spellcheck={false}
          aria-invalid={problem !== ''}
          onInput={(event) => typedJson(event.currentTarget.value)}
        />
        {problem !== '' && <small class="problem">{problem}</small>}
      </label>
    );
  }
  return (
    <>
      {fields.map((field) => (
        <label key={field.name} class="field">
          <span>
            {visible(field.name)}
            {!field.required && <small> optional</small>}
            {field.description !== '' && <small> {visible(field.description)}</small>}
          </span>
          <Input
            field={field}
            text={texts.get(field.name) ?? field.initial}
            onText={(text) => typed(field.name, text)}
          />
        </label>
      ))}
      <button type="button" class="plain" onClick={toRaw}>
        Edit as JSON
      </button>
    </>
  );
}

function Input({
  field,
  text,
  onText,
}: {
  field: Field;
  text: string;
  onText: (text: string) => void;
}): JSX.Element {
  const { kind, choices, required } = field;
  if (kind === 'boolean' || kind === 'choice') {
    const values = kind === 'boolean' ? ['true', 'false'] : choices;
    return (
      <select value={text} required={required} onChange={(event) => onText(event.currentTarget.value)}>
        {(!required || text === '') && <option value="">not set</option>}
        {values.map((value) => (
          <option key={value} value={value}>
            {visible(value)}
          </option>
        ))}
      </select>
    );
  }
  if (kind === 'text' && (text.length > 60 || text.includes('\n'))) {
    const rows = Math.min(8, Math.max(1, Math.ceil(text.length / 60), text.split('\n').length));
    return <textarea rows={rows} value={text} onInput={(event) => onText(event.currentTarget.value)} />;
  }
  const typed = (event: { currentTarget: HTMLInputElement }): void => onText(event.currentTarget.value);
  if (kind === 'text') return <input type="text" value={text} onInput={typed} />;
  const step = kind === 'integer' ? 1 : 'any';
  return <input type="number" step={step} value={text} required={required} onInput={typed} />;
}
