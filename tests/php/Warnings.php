<?php
// SPDX-License-Identifier: MIT

declare(strict_types=1);

use Psr\Log\AbstractLogger;

/** A logger that keeps what it was given. */
final class Warnings extends AbstractLogger
{
    public string $last = '';
    /** @var list<string> */
    public array $all = [];

    public function log($level, $message, array $context = []): void
    {
        $this->last = (string) $message;
        $this->all[] = "$level: $message";
    }
}
