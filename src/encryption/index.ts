/** `perdure/encryption`: a payload codec that encrypts. */
export { type AesGcmOptions, aesGcmCodec } from './aes-gcm.ts';
