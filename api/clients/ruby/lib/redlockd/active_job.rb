# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "active_support/concern"
require_relative "../redlockd"

module Redlockd
  # For jobs of ActiveJob: at most one job with the same resource is performed at a
  # time, on any machine.
  #
  #   class ImportJob < ActiveJob::Base
  #     include Redlockd::ActiveJob
  #     perform_under_lock(ttl: 60, wait: 0, held: :discard) { |shop| "import:#{shop}" }
  #
  # The lock is held while the job is performed, and not while it is queued.
  module ActiveJob
    extend ActiveSupport::Concern

    class << self
      attr_writer :client

      # Of all jobs that name none; the environment says where its servers are.
      def client
        LOCK.synchronize { @client ||= Client.new }
      end
    end

    LOCK = Mutex.new
    private_constant :LOCK

    class_methods do
      # The block makes the resource, or several, of the job's arguments. held: what
      # becomes of a job whose lock somebody else holds: :raise, which raises LockHeld,
      # as for retry_on; or :discard. The others are those of Client#lock.
      def perform_under_lock(client: nil, held: :raise, **options, &resources)
        raise ArgumentError, "held is :raise or :discard" unless %i[raise discard].include?(held)
        raise ArgumentError, "a block makes the resource" unless resources

        around_perform do |job, block|
          names = Array(job.instance_exec(*job.arguments, &resources))
          one = (client || ActiveJob.client).lock(*names, **options)
          # no interrupt between the acquire and the block that releases
          Thread.handle_interrupt(Object => :never) do
            begin
              one.acquire
            rescue LockHeld => e
              raise if held == :raise

              job.logger&.info("#{job.class.name} is discarded: #{e.message}")
              next
            end
            job.perform_under(one, block)
          end
        end
      end
    end

    # The lock of the job that is performed; nil: there is none.
    attr_reader :lock

    # Internal: the lock was acquired.
    def perform_under(one, block)
      @lock = one
      one.with_held { block.call }
    ensure
      @lock = nil
    end
  end
end
