import { invalid } from '../contract/errors.ts';
import type { ValueStore } from '../contract/values.ts';
import { isPostgresUrl } from '../postgres/index.ts';
import { DirectoryValues } from './directory-values.ts';
import { PostgresValues } from './postgres-values.ts';
import { isS3Url } from './s3-url.ts';
import { S3Values } from './s3-values.ts';

/**
 * Opens a store: the URL of a PostgreSQL database or of an S3 bucket, or the path of a directory.
 *
 * @throws PerdureError `INVALID_ARGUMENT`
 */
export function openValues(place: string): ValueStore {
  if (isPostgresUrl(place)) return new PostgresValues(place);
  if (isS3Url(place)) return new S3Values(place);
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(place))
    throw invalid(
      'values',
      'write a directory, postgres://user:password@host:5432/database, or s3://bucket/prefix',
    );
  return new DirectoryValues(place);
}
