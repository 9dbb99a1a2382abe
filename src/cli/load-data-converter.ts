/** Loads the data converter that a user names: the codecs and converters of all clients and workers of a command. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import { PerdureError } from '../contract/errors.ts';
import { importModule, isObject } from './import-module.ts';

const EXAMPLE = 'export const dataConverter = { payloadCodecs: [aesGcmCodec({ keys: { … }, current: … })] }';

/**
 * The data converter that a module exports as `dataConverter`, or by its fields.
 *
 * @throws PerdureError `INVALID_ARGUMENT` when it is not a file; `INVALID_DEFINITION` when it exports no data converter
 */
export async function loadDataConverter(
  named: string,
  onFile: (file: string) => void,
): Promise<DataConverter> {
  const path = resolve(named);
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `data converter: ${path} is not a file. Create it: ${EXAMPLE}`,
      {
        details: { module: path },
      },
    );
  }
  const { values, names } = await importModule(path, onFile);
  const found = values['dataConverter'] ?? values;
  const problem = problemOf(found);
  if (problem === null) return found;
  throw new PerdureError(
    'INVALID_DEFINITION',
    `${path}: ${problem} (it exports ${names.join(', ') || 'nothing'}). Write: ${EXAMPLE}`,
    { details: { module: path, exports: names } },
  );
}

function problemOf(found: unknown): string | null {
  if (!isObject(found)) return 'the export dataConverter is not an object';
  const { payloadCodecs: codecs, payloadConverterPath, failureConverterPath } = found;
  if (codecs === undefined && payloadConverterPath === undefined && failureConverterPath === undefined) {
    return 'there is no data converter';
  }
  if (codecs === undefined || (Array.isArray(codecs) && codecs.every(isCodec))) return null;
  return 'payloadCodecs is not a list of codecs with encode and decode';
}

function isCodec(value: unknown): value is PayloadCodec {
  return isObject(value) && typeof value['encode'] === 'function' && typeof value['decode'] === 'function';
}
