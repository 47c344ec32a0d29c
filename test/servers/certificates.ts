import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

/** A certificate with its key, as files and as PEM text. */
export type Identity = {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly certificate: string;
  readonly key: string;
};

export type Certificates = {
  /** Who signed the server and the client. */
  readonly authority: Identity;
  /** For 127.0.0.1 and localhost. */
  readonly server: Identity;
  /** CN=relay. */
  readonly client: Identity;
  /** CN=relay too, but signed by itself. */
  readonly stranger: Identity;
};

const run = promisify(execFile);
const days = "2";

/** Made anew in `folder` for every server: two days are enough, and nothing secret is kept anywhere. */
export async function createCertificates(folder: string): Promise<Certificates> {
  const authority = await selfSigned(folder, "authority", "/CN=test authority");
  const [server, client, stranger] = await Promise.all([
    signed(folder, "server", "/CN=127.0.0.1", authority, "subjectAltName=IP:127.0.0.1,DNS:localhost"),
    signed(folder, "client", "/CN=relay", authority, "extendedKeyUsage=clientAuth"),
    selfSigned(folder, "stranger", "/CN=relay"),
  ]);
  return { authority, server, client, stranger };
}

async function selfSigned(folder: string, name: string, subject: string): Promise<Identity> {
  const files = filesOf(folder, name);
  await run("openssl", [...request(files.keyFile, subject), "-x509", "-days", days, "-out", files.certificateFile]);
  return withText(files);
}

async function signed(
  folder: string,
  name: string,
  subject: string,
  authority: Identity,
  extension: string,
): Promise<Identity> {
  const files = filesOf(folder, name);
  const [requestFile, extensionFile] = [join(folder, `${name}.csr`), join(folder, `${name}.ext`)];
  writeFileSync(extensionFile, extension);
  await run("openssl", [...request(files.keyFile, subject), "-out", requestFile]);
  const signer = ["-CA", authority.certificateFile, "-CAkey", authority.keyFile, "-days", days];
  const output = ["-extfile", extensionFile, "-out", files.certificateFile];
  await run("openssl", ["x509", "-req", "-in", requestFile, ...signer, ...output]);
  return withText(files);
}

function request(keyFile: string, subject: string): string[] {
  return [
    ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-keyout", keyFile, "-subj", subject],
  ];
}

function filesOf(folder: string, name: string) {
  return { certificateFile: join(folder, `${name}.crt`), keyFile: join(folder, `${name}.key`) };
}

function withText(files: { readonly certificateFile: string; readonly keyFile: string }): Identity {
  const [certificate, key] = [readFileSync(files.certificateFile, "utf8"), readFileSync(files.keyFile, "utf8")];
  return { ...files, certificate, key };
}
