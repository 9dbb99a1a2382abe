/** `perdure/encryption`: a payload codec that encrypts, and a codec server. */
export { type AesGcmOptions, aesGcmCodec } from './aes-gcm.ts';
export { type CodecServerOptions, createCodecServer } from './codec-server.ts';
