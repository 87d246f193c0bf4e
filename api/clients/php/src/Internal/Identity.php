<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Redlockd\Internal;

/**
 * The access token, which may be replaced, and the files for TLS. Those that are
 * omitted come from the environment. Errors never contain the token.
 */
final class Identity
{
    private const LONGEST_TOKEN = 4096; // it is sent in a header as it is

    private string $token = '';
    private ?string $tokenFile;
    public readonly ?string $caFile;
    public readonly ?string $certFile;
    public readonly ?string $keyFile;

    public function __construct(
        #[\SensitiveParameter] ?string $authToken,
        ?string $authTokenFile,
        ?string $caFile,
        ?string $certFile,
        ?string $keyFile,
    ) {
        if ($authToken === null && $authTokenFile === null) {
            $authToken = self::variable('REDLOCKD_AUTH_TOKEN');
            $authTokenFile = self::variable('REDLOCKD_AUTH_TOKEN_FILE');
        }
        if ($authToken !== null && $authTokenFile !== null) {
            throw new \InvalidArgumentException('give either an access token or a file that has it');
        }
        $this->tokenFile = $authTokenFile;
        if ($authTokenFile !== null) {
            $this->token = self::readFile($authTokenFile);
        } elseif ($authToken !== null) {
            $this->token = self::checked($authToken, 'the access token');
        }
        if ($caFile === null && $certFile === null && $keyFile === null) {
            $caFile = self::variable('REDLOCKD_CACERT');
            $certFile = self::variable('REDLOCKD_CERT');
            $keyFile = self::variable('REDLOCKD_KEY');
        }
        if ($keyFile !== null && $certFile === null) {
            throw new \InvalidArgumentException('keyFile without certFile: name its certificate');
        }
        foreach ([$caFile, $certFile, $keyFile] as $file) {
            if ($file !== null && !is_readable($file)) {
                throw new \InvalidArgumentException("cannot read $file");
            }
        }
        [$this->caFile, $this->certFile, $this->keyFile] = [$caFile, $certFile, $keyFile];
    }

    /** @return array<string, mixed> without the secrets */
    public function __debugInfo(): array
    {
        return ['tokenFile' => $this->tokenFile, 'caFile' => $this->caFile, 'certFile' => $this->certFile];
    }

    private static function variable(string $name): ?string
    {
        return getenv($name) ?: null;
    }

    private static function readFile(string $file): string
    {
        $text = @file_get_contents($file);
        if ($text === false) {
            throw new \InvalidArgumentException("cannot read the file of the access token, $file");
        }
        return self::checked((string) preg_replace('/\r?\n\z/', '', $text), "the access token in $file");
    }

    private static function checked(#[\SensitiveParameter] string $token, string $where): string
    {
        if (!preg_match('/^[!-~]+$/D', $token) || strlen($token) > self::LONGEST_TOKEN) {
            throw new \InvalidArgumentException("$where is not 1 to 4096 ASCII letters, digits and signs");
        }
        return $token;
    }

    /** The value of the header; '': there is no token. */
    public function authorization(): string
    {
        return $this->token === '' ? '' : "Bearer $this->token";
    }

    /**
     * After a 401: reads the file again. Whether the token is another one now. A
     * file that cannot be read, or is half written, changes nothing.
     */
    public function refresh(): bool
    {
        if ($this->tokenFile === null) {
            return false;
        }
        $refused = $this->token;
        try {
            $this->token = self::readFile($this->tokenFile);
        } catch (\InvalidArgumentException) {
            return false;
        }
        return $this->token !== $refused;
    }
}
