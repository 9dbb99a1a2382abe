import type { S3 } from '@aws-sdk/client-s3';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { S3Place } from './s3-url.ts';

/** Time-outs in milliseconds: for connecting, and for a connection without traffic. The SDK tries three times. */
const CONNECT_MS = 5_000;
const SILENT_MS = 15_000;

/** What to do about errors that a wrong configuration causes, by their name. */
const HINTS: Readonly<Record<string, string>> = {
  AccessDenied: 'allow s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject',
  CredentialsProviderError: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
  NoSuchBucket: 'create the bucket',
};

/** How often to try a write that conflicts with another one. The SDK does not retry it. */
const WRITES = 10;

/** An object of a bucket. */
export interface S3Object {
  key: string;
  bytes: number;
  /** Milliseconds since 1970. AWS gives whole seconds. */
  storedAt: number;
}

/** The objects of a bucket below a prefix. Calls reject with `SERVER_UNAVAILABLE` when the bucket cannot be used. */
export class S3Bucket {
  readonly #place: S3Place;
  #client: Promise<S3> | undefined;

  constructor(place: S3Place) {
    this.#place = place;
  }

  async write(key: string, bytes: Uint8Array): Promise<void> {
    await this.#call(async (s3, at) => {
      const put = (): Promise<unknown> => s3.putObject({ ...at(key), Body: bytes });
      for (let i = 1; i < WRITES; i++) {
        const conflicts = await put().then(() => false, isConflict);
        if (!conflicts) return;
      }
      await put();
    });
  }

  /** The bytes of an object, or `null`. */
  async read(key: string): Promise<Uint8Array | null> {
    return this.#call(async (s3, at) => {
      const found = await orNull(s3.getObject(at(key)));
      return (await found?.Body?.transformToByteArray()) ?? null;
    });
  }

  async has(key: string): Promise<boolean> {
    return this.#call(async (s3, at) => (await orNull(s3.headObject(at(key)))) !== null);
  }

  async remove(...keys: string[]): Promise<void> {
    // AWS takes the removal of a missing object for done. Other services may answer that there is none.
    await this.#call((s3, at) => Promise.all(keys.map((key) => orNull(s3.deleteObject(at(key))))));
  }

  /** The objects whose keys have this beginning, in the order of their keys. */
  async *list(beginning: string, limit?: number): AsyncGenerator<S3Object> {
    const { bucket, prefix } = this.#place;
    let ContinuationToken: string | undefined;
    do {
      const input = {
        Bucket: bucket,
        Prefix: prefix + beginning,
        ...defined({ ContinuationToken, MaxKeys: limit }),
      };
      const { Contents = [], NextContinuationToken } = await this.#call((s3) => s3.listObjectsV2(input));
      for (const { Key = '', Size = 0, LastModified } of Contents)
        yield { key: Key.slice(prefix.length), bytes: Size, storedAt: LastModified?.getTime() ?? 0 };
      ContinuationToken = NextContinuationToken;
    } while (ContinuationToken !== undefined && limit === undefined);
  }

  async #call<T>(
    work: (s3: S3, at: (key: string) => { Bucket: string; Key: string }) => Promise<T>,
  ): Promise<T> {
    const { bucket, prefix } = this.#place;
    try {
      this.#client ??= newClient(this.#place);
      return await work(await this.#client, (key) => ({ Bucket: bucket, Key: prefix + key }));
    } catch (cause) {
      if (cause instanceof PerdureError) throw cause;
      const { name = '', message = '' } = cause as { name?: string; message?: string };
      const hint = HINTS[name] ?? (message === 'Region is missing' ? 'set AWS_REGION' : undefined);
      const known = [name, message].filter((text) => text !== '' && text !== 'Error');
      const why = known.join(': ').replace(/\.$/, '');
      throw new PerdureError(
        'SERVER_UNAVAILABLE',
        `s3://${bucket}/${prefix} cannot be used: ${why}${hint === undefined ? '' : `. Next: ${hint}`}`,
        { cause },
      );
    }
  }
}

async function newClient({ endpoint, region, forcePathStyle, credentials }: S3Place): Promise<S3> {
  let Driver: typeof S3;
  try {
    ({ S3: Driver } = await import('@aws-sdk/client-s3'));
  } catch (cause) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `Values in S3 need the package @aws-sdk/client-s3, which could not be loaded: ${messageOf(cause)}. ` +
        'Install it with npm install @aws-sdk/client-s3.',
      { cause },
    );
  }
  // Other services ignore the region, but the SDK requires one. They may not support the checksums of AWS.
  const elsewhere = {
    region: process.env['AWS_REGION'] || 'us-east-1',
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  } as const;
  return new Driver({
    ...(endpoint === undefined ? {} : elsewhere),
    ...defined({ endpoint, region, forcePathStyle, credentials }),
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENT_MS },
  });
}

/** Whether another request changes the same place at this moment. @throws any other error */
function isConflict(error: unknown): true {
  const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
  if ($metadata?.httpStatusCode === 409) return true;
  throw error;
}

async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    // HEAD has no body that could name the error.
    const { name } = error as { name?: string };
    if (name === 'NoSuchKey' || name === 'NotFound') return null;
    throw error;
  }
}
