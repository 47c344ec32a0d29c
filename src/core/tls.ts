/** How a client of a destination uses TLS. */
export interface TlsOptions {
  /** PEM text, of one or several certificates. */
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The name that the server's certificate bears, when it is not the name it is reached by. */
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** The same with a key that is encrypted. */
export interface TlsOptionsWithPassphrase extends TlsOptions {
  readonly passphrase?: string;
}
