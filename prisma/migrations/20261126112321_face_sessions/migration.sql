-- CreateTable
CREATE TABLE "face_sessions" (
    "organization_id" UUID NOT NULL,
    "face" TEXT NOT NULL,
    "agent_id" UUID NOT NULL,
    "external_id" TEXT NOT NULL,
    "session_id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "face_sessions_pkey" PRIMARY KEY ("organization_id","face","agent_id","external_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "face_sessions_session_id_key" ON "face_sessions"("session_id");

-- AddForeignKey
ALTER TABLE "face_sessions" ADD CONSTRAINT "face_sessions_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;
