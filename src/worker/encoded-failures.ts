/** Sends failure messages and stack traces through the codecs of workers that encrypt. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { DataConverter } from '@temporalio/common';
import { ASK_AGAIN, ENCRYPTS } from '../contract/failure.ts';
import { generatedModule } from './own-directory.ts';

/** The SDK loads a failure converter by its path, outside the sandbox and into the bundle. */
const SOURCE = `const { DefaultFailureConverter } = require(${JSON.stringify(createRequire(import.meta.url).resolve('@temporalio/common'))});
const encoded = new DefaultFailureConverter({ encodeCommonAttributes: true });
const plain = new DefaultFailureConverter();
exports.failureConverter = {
  // The server hands the message of a failed query to the client without its payloads.
  errorToFailure: (error, ...rest) =>
    (error?.message === ${JSON.stringify(ASK_AGAIN)} ? plain : encoded).errorToFailure(error, ...rest),
  failureToError: (...args) => encoded.failureToError(...args),
};
`;

let written: string | undefined;

/** The file of our failure converter. */
function converterFile(): string {
  if (written !== undefined && existsSync(written)) return written;
  written = generatedModule(SOURCE, 'failures-');
  return written;
}

/** Adds our failure converter to the options of a worker whose codec encrypts, unless they name another converter. */
export function withEncodedFailures<T extends { dataConverter?: DataConverter }>(options: T): T {
  const { dataConverter } = options;
  const encrypts = dataConverter?.payloadCodecs?.some((codec) => ENCRYPTS in codec) === true;
  if (!encrypts || dataConverter.failureConverterPath !== undefined) return options;
  return { ...options, dataConverter: { ...dataConverter, failureConverterPath: converterFile() } };
}

/** Whether a failure converter is the one of {@link withEncodedFailures}. */
export function isOurConverter(path: string | undefined): path is string {
  return path !== undefined && path === written;
}
