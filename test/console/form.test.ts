import { describe, expect, test } from 'vitest';
import { argsOf, fieldsOf } from '../../src/console/form.ts';

const schema = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
});

describe('a form of a schema', () => {
  test('has a field for each property, and gives the arguments back as they were', () => {
    const args = { text: 'a\nb', cents: 5, whole: 1, sure: true, size: 'l' };
    const fields = fieldsOf(
      schema(
        {
          text: { type: 'string', description: 'What to say' },
          cents: { type: 'number' },
          whole: { type: 'integer' },
          sure: { type: 'boolean' },
          size: { enum: ['s', 'l'] },
          more: { type: 'string' },
        },
        ['text', 'cents'],
      ),
      args,
    );
    expect(fields?.map(({ kind }) => kind)).toEqual([
      'text',
      'number',
      'integer',
      'boolean',
      'choice',
      'text',
    ]);
    expect(argsOf(fields ?? [], new Map())).toEqual(args);
    const typed = new Map([
      ['cents', '7.5'],
      ['sure', ''],
      ['text', ''],
      ['more', 'x'],
    ]);
    expect(argsOf(fields ?? [], typed)).toEqual({ text: '', cents: 7.5, whole: 1, size: 'l', more: 'x' });
  });

  test.each([
    ['nested values', schema({ a: { type: 'object' } }), {}],
    ['a list', schema({ a: { type: 'array' } }), { a: [] }],
    ['alternatives', { ...schema({ a: { type: 'string' } }), anyOf: [] }, {}],
    ['a type that does not fit', schema({ a: { type: 'string' } }), { a: 5 }],
    ['arguments that the schema does not name', schema({ a: { type: 'string' } }), { a: 'x', b: 1 }],
    ['numbers to choose from', schema({ a: { enum: [1, 2] } }), { a: 1 }],
    ['no schema', undefined, {}],
    ['arguments that are no object', schema({ a: { type: 'string' } }), 'text'],
  ])('is not made for %s', (_what, of, args) => {
    expect(fieldsOf(of, args)).toBeNull();
  });
});
