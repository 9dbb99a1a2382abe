import { invalid } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';

/** Options of {@link S3Values}. */
export interface S3Options {
  /** The URL of an S3-compatible service. Default: AWS, or what the AWS SDK's own settings say. */
  endpoint?: string;
  /** Default: what the AWS SDK's own settings say. */
  region?: string;
  /** Whether the bucket is in the path of URLs, not in their host name. Default: only with an `endpoint`. */
  forcePathStyle?: boolean;
  /** Default: the AWS SDK looks for them, in `AWS_ACCESS_KEY_ID` and elsewhere. */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
}

export interface S3Place extends S3Options {
  bucket: string;
  /** The beginning of all keys: empty, or with a slash at its end. */
  prefix: string;
}

const HOW = 'write s3://bucket/prefix, with ?endpoint=https://… for a service that is not AWS';

export function isS3Url(text: string): boolean {
  return /^s3:\/\//i.test(text);
}

/** @throws PerdureError `INVALID_ARGUMENT` */
export function parseS3Url(url: string): S3Place {
  const parsed = isS3Url(url) && URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || parsed.hostname === '' || parsed.port !== '') throw invalid('url', HOW);
  if (parsed.username !== '' || parsed.pathname.includes('@')) {
    throw invalid('url', 'it holds credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead');
  }
  const { endpoint, region, forcePathStyle, ...others } = Object.fromEntries(parsed.searchParams);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw invalid(
      'url',
      `it has an unknown option ${unknown}. Known are endpoint, region and forcePathStyle`,
    );
  }
  if (endpoint !== undefined && !/^https?:\/\/./i.test(endpoint)) {
    throw invalid('url', 'endpoint: write a URL, such as https://s3.example.com');
  }
  const path = pathOf(parsed).replace(/^\/+|\/+$/g, '');
  return {
    bucket: parsed.hostname,
    prefix: path === '' ? '' : `${path}/`,
    ...defined({ endpoint, region }),
    ...(forcePathStyle === undefined ? {} : { forcePathStyle: forcePathStyle !== 'false' }),
  };
}

function pathOf({ pathname }: URL): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    throw invalid('url', `${HOW}. Write % as %25`);
  }
}
