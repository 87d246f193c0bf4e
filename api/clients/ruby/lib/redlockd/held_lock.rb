# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # A lock that somebody holds, as a server described it. nil: not known, as for locks
  # of other libraries, and of readers.
  #
  # remaining: seconds until it expires, unless it is extended. waiters: clients that
  # wait for it at the server that was asked. readers: how many hold it; 0: it is
  # exclusive. slots: of permits. version: changes when the lock changes hands.
  HeldLock = Struct.new(:id, :resources, :owner, :fencing_token, :remaining, :waiters, :readers,
                        :slots, :version, keyword_init: true) do
    def self.read(of)
      new(id: of["id"], resources: of["resources"] || [of["resource"]], owner: of["owner"],
          fencing_token: of["fencing_token"], remaining: of["remaining_ms"]&.fdiv(1000),
          waiters: of["waiters"] || 0, readers: of["readers"] || 0, slots: of["slots"] || [],
          version: of["version"]).freeze
    end
  end
end
